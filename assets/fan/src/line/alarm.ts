// Tells somebody who looks elsewhere that it is their turn: the tab's title always; a sound and the
// system's own message where they were asked for, by a press of a button, since browsers want one.

let sound: AudioContext | null = null;

export function canNotify(): boolean {
  return 'Notification' in globalThis && Notification.permission !== 'denied';
}

/** To be called from a press of a button. True if a message of the system may be shown. */
export async function allowAlarm(): Promise<boolean> {
  try {
    sound ??= new AudioContext();
    void sound.resume();
    chime(0.05);
  } catch {
    // No sound, then.
  }
  try {
    return canNotify() && (await Notification.requestPermission()) === 'granted';
  } catch {
    return false;
  }
}

/** Silence again. */
export function disallowAlarm(): void {
  void sound?.close();
  sound = null;
}

export function ring(title: string, body: string): void {
  if (!sound) return;
  chime(0.25);
  try {
    if (Notification.permission !== 'granted') return;
    const message = new Notification(title, {
      body,
      tag: 'fullhouse.turn',
      requireInteraction: true,
    });
    message.onclick = () => {
      focus();
      message.close();
    };
  } catch {
    // Phones show messages from service workers only; the sound and the title are what is left.
  }
}

/** Three notes, as before an act. */
function chime(loud: number): void {
  const context = sound;
  if (!context) return;
  [523.25, 659.25, 783.99].forEach((pitch, i) => {
    const at = context.currentTime + 0.02 + i * 0.22;
    const tone = context.createOscillator();
    const volume = context.createGain();
    tone.frequency.value = pitch;
    volume.gain.setValueAtTime(0, at);
    volume.gain.linearRampToValueAtTime(loud, at + 0.03);
    volume.gain.exponentialRampToValueAtTime(0.001, at + 0.9);
    tone.connect(volume).connect(context.destination);
    tone.start(at);
    tone.stop(at + 1);
  });
}
