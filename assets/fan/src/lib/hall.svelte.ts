// Whether the hall's map is shown: then the first link of the page leads past it, to the list of seats.

let shown = $state(false);

export const hall = {
  get shown(): boolean {
    return shown;
  },
  set shown(value: boolean) {
    shown = value;
  },
};
