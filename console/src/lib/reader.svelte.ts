// Reads answers aloud, one at a time, sentence by sentence.

import { message, post } from "./api";

interface Sentence {
  sentences: number;
  wav: string | null;
}

class Reader {
  /** The key of the answer that is being read. */
  current = $state<string | null>(null);
  error = $state("");
  private context: AudioContext | null = null;

  async read(name: string, text: string) {
    this.stop();
    const context = new AudioContext();
    [this.context, this.current, this.error] = [context, name, ""];
    try {
      // The next sentence is synthesized while one is played.
      const load = (sentence: number) => post<Sentence>("speak", { text, sentence });
      let next = load(0);
      for (let at = 0; this.context === context; at++) {
        const { sentences, wav } = await next;
        if (at >= sentences) break;
        next = at + 1 < sentences ? load(at + 1) : Promise.resolve({ sentences, wav: null });
        next.catch(() => {});
        if (wav && this.context === context) await play(context, wav);
      }
    } catch (failure) {
      if (this.context === context) this.error = message(failure);
    } finally {
      if (this.context === context) this.stop();
    }
  }

  stop() {
    void this.context?.close();
    [this.context, this.current] = [null, null];
  }
}

async function play(context: AudioContext, wav: string) {
  const bytes = Uint8Array.from(atob(wav), (letter) => letter.charCodeAt(0));
  const source = context.createBufferSource();
  source.buffer = await context.decodeAudioData(bytes.buffer);
  source.connect(context.destination);
  await new Promise<void>((done) => {
    source.onended = () => done();
    context.onstatechange = () => context.state === "closed" && done();
    source.start();
  });
}

export const reader = new Reader();
