import { mount } from 'svelte';
import '../../../assets/fan/src/app.css';
import './app.css';
import App from './App.svelte';
import Display from './customer/Display.svelte';
import { openHost } from './host/port.ts';
import { start } from './lib/till.svelte.ts';

// A till is no browser: nothing is dragged, no menu of the web view comes up.
for (const name of ['contextmenu', 'dragstart', 'drop', 'dragover'])
  addEventListener(name, (event) => event.preventDefault());
// Two fingers zoom a map, never the page.
addEventListener('touchmove', (event) => event.touches.length > 1 && event.preventDefault(), {
  passive: false,
});

const target = document.getElementById('app')!;
const host = await openHost();
if (host.customer.display) mount(Display, { target, props: { host: host.customer } });
else void start(host).then(() => mount(App, { target }));
