// The map's colours follow the system's light or dark scheme, also when it changes.

import { DARK, LIGHT, type Palette } from '../../../seat-map/index.ts';

const light = matchMedia('(prefers-color-scheme: light)');
let current = $state.raw<Palette>(light.matches ? LIGHT : DARK);
light.addEventListener('change', () => (current = light.matches ? LIGHT : DARK));

export const palette = {
  get current(): Palette {
    return current;
  },
};

const calm = matchMedia('(prefers-reduced-motion: reduce)');
export const reducedMotion = () => calm.matches;
