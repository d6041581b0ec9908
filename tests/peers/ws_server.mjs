// A broadcast server on `ws`, as its README has it: every message to every client.
//
//     node ws_server.mjs FOLDER_WITH_NODE_MODULES
//
// It prints its port, and ends when its input does.

import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { resolve } from 'node:path';

const [folder] = process.argv.slice(2);
const require = createRequire(resolve(folder, 'node_modules', 'ws', 'package.json'));
const { WebSocketServer, WebSocket } = require('ws');

const server = createServer((request, response) => {
  const parts = [];
  request.on('data', (part) => parts.push(part));
  request.on('end', () => {
    const frame = Buffer.concat(parts);
    for (const client of sockets.clients) {
      if (client.readyState === WebSocket.OPEN) client.send(frame, { binary: true });
    }
    response.writeHead(204).end();
  });
});
const sockets = new WebSocketServer({ server, path: '/live' });
server.listen({ port: 0, host: '127.0.0.1', backlog: 65535 }, () =>
  console.log(server.address().port),
);
process.stdin.resume().on('end', () => process.exit());
