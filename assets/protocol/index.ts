// What travels between the hub and a browser: binary frames, JSON bodies, error codes.
// Imports nothing of ours; everything else in assets/ may import it.

export * from './draw.ts';
export * from './frames.ts';
export * from './geometry.ts';
export * from './json.ts';
export * from './line.ts';
export * from './problems.ts';
export * from './till.ts';
