// The map's feed through the host: in the desktop its socket lives in Rust, and is heard of here.

import { browserPorts, type FeedPorts } from '../../../../assets/hub-client/index.ts';
import { till } from './till.svelte.ts';

export function hostPorts(): FeedPorts {
  return {
    ...browserPorts(),
    async fetchBytes(address) {
      const response = await till.host.fetch(address);
      if (response.status === 404) return null;
      if (!response.ok) throw new Error(`${address}: ${response.status}`);
      return response.arrayBuffer();
    },
    openSocket: (address, handlers) => till.host.openSocket(address, handlers),
  };
}
