// Where the cells of the map stand: a node is a column of its devices, columns follow each other in bands as lines of text
// do, so that a thousand nodes are one look. Arithmetic only.

export interface Layout {
  left: number; // of the first column: names of devices stand before it
  cell: number; // side of a cell
  across: number; // nodes in a band
  bands: number;
  devices: number;
  stride: number; // from band to band
  width: number;
  height: number;
}

export const kBandHead = 18; // names of nodes above a band
const kBandGap = 6;
const kLargest = 26;
const kSmallest = 3;
const kTall = 680; // what the map may take before cells shrink

export function layout(nodes: number, devices: number, width: number, left: number): Layout {
  const room = Math.max(kLargest, Math.floor(width - left - 2));
  const made = (cell: number): Layout => {
    const across = Math.max(1, Math.min(nodes, Math.floor(room / cell)));
    const bands = Math.max(1, Math.ceil(nodes / across));
    const stride = kBandHead + devices * cell + kBandGap;
    return { left, cell, across, bands, devices, stride, width: left + across * cell + 2, height: bands * stride };
  };
  for (let cell = kLargest; cell > kSmallest; --cell) {
    const tried = made(cell);
    if (tried.height <= kTall) return tried;
  }
  return made(kSmallest);
}

/** The upper left corner of a cell. */
export function corner(map: Layout, place: number, device: number): [number, number] {
  const band = Math.floor(place / map.across);
  return [map.left + (place - band * map.across) * map.cell, band * map.stride + kBandHead + device * map.cell];
}

/** The place of a node and the device at a point; nothing beside the cells. */
export function cell_at(map: Layout, nodes: number, x: number, y: number): { place: number; device: number } | null {
  const band = Math.floor(y / map.stride);
  const device = Math.floor((y - band * map.stride - kBandHead) / map.cell);
  const column = Math.floor((x - map.left) / map.cell);
  const place = band * map.across + column;
  if (band < 0 || band >= map.bands || device < 0 || device >= map.devices || column < 0 || column >= map.across || place >= nodes) return null;
  return { place, device };
}

/** Every how many columns a name of `letters` letters finds room. */
export function label_step(cell: number, letters: number): number {
  const least = (letters * 6.4 + 12) / cell;
  return [1, 2, 4, 5, 8, 10, 16, 20, 25, 32, 50, 64, 100, 128, 200].find((step) => step >= least) ?? 500;
}
