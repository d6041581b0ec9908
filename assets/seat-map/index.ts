// The renderer of seat maps: framework-free, for the fan's page and the desktop alike.
// Reading order: plan → board → camera → looks → layers → edges → overlay → gestures → seat-map.
// It knows the protocol and nothing else: no prices, no holds, no network.

export { readPlan, type Plan, type PlanSection } from './plan.ts';
export { Board, Look, Own } from './board.ts';
export { DARK, LIGHT, type Palette } from './palette.ts';
export { SeatMap, type SeatMapOptions } from './seat-map.ts';
