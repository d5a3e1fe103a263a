// OpenCL body of adam. Only gradients have the launch's type; parameters and moments are floats.
WEIR_KERNEL(adam) {
  __global const weir_element* const gradients = WEIR_OPERAND(const weir_element, 0);
  __global float* const parameters = WEIR_OPERAND(float, 1);
  __global float* const means = WEIR_OPERAND(float, 2);
  __global float* const squares = WEIR_OPERAND(float, 3);
  const float rate = a.scalars[0], beta1 = a.scalars[1], beta2 = a.scalars[2], epsilon = a.scalars[3];
  for (long i = global_thread(); i < a.dims[0]; i += global_threads()) {
    const float gradient = load(gradients, i);
    const float mean = beta1 * means[i] + (1.0f - beta1) * gradient;
    const float square = beta2 * squares[i] + (1.0f - beta2) * gradient * gradient;
    means[i] = mean;
    squares[i] = square;
    parameters[i] -= rate * mean / (sqrt(square) + epsilon);
  }
}
