// OpenCL body of adamw. Gradients and rounded parameters have the launch's type; the rest are floats.
WEIR_KERNEL(adamw) {
  __global const weir_element* const gradients = WEIR_OPERAND(const weir_element, 0);
  __global float* const parameters = WEIR_OPERAND(float, 1);
  __global float* const means = WEIR_OPERAND(float, 2);
  __global float* const squares = WEIR_OPERAND(float, 3);
  __global const float* const state = WEIR_OPERAND(const float, 4);
  __global weir_element* const low = WEIR_OPERAND(weir_element, 5);
  const float beta1 = a.scalars[0], beta2 = a.scalars[1], epsilon = a.scalars[2];
  const float clip = state[1], kept = 1.0f - state[2] * a.scalars[3];
  // 1 - beta^step without the difference, which loses digits if beta is close to 1.
  const float rate = state[2] / -expm1(state[0] * log(beta1));
  const float correction = 1.0f / sqrt(-expm1(state[0] * log(beta2)));
  for (long i = global_thread(); i < a.dims[0]; i += global_threads()) {
    const float gradient = clip * load(gradients, i);
    const float mean = beta1 * means[i] + (1.0f - beta1) * gradient;
    const float square = beta2 * squares[i] + (1.0f - beta2) * gradient * gradient;
    const float parameter = kept * parameters[i] - rate * mean / (sqrt(square) * correction + epsilon);
    means[i] = mean;
    squares[i] = square;
    parameters[i] = parameter;
    store(low, i, parameter);
  }
}
