import { mount } from 'svelte';
import '../../../assets/fan/src/app.css';
import './app.css';
import App from './App.svelte';
import { start } from './lib/till.svelte.ts';

// A till is no browser: nothing is dragged, no menu of the web view comes up.
for (const name of ['contextmenu', 'dragstart', 'drop', 'dragover'])
  addEventListener(name, (event) => event.preventDefault());
// Two fingers zoom a map, never the page.
addEventListener('touchmove', (event) => event.touches.length > 1 && event.preventDefault(), {
  passive: false,
});

void start().then(() => mount(App, { target: document.getElementById('app')! }));
