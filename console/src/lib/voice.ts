// Speech from the microphone, as a WAV file that the daemon can transcribe.

/** Samples per second that speech recognition needs. */
const RATE = 16_000;
const HEADER = 44;

export class Recording {
  private pieces: Blob[] = [];
  private constructor(private recorder: MediaRecorder) {
    recorder.ondataavailable = (event) => this.pieces.push(event.data);
    recorder.start();
  }

  /** Begins to record. Fails if the browser or the person does not allow it. */
  static async begin(): Promise<Recording> {
    const stream = await navigator.mediaDevices.getUserMedia({ audio: { channelCount: 1 } });
    return new Recording(new MediaRecorder(stream));
  }

  /** Ends the recording, and the use of the microphone. */
  async end(): Promise<Uint8Array> {
    await new Promise((done) => {
      this.recorder.onstop = done;
      this.recorder.stop();
    });
    this.release();
    const context = new AudioContext({ sampleRate: RATE });
    try {
      const audio = await context.decodeAudioData(await new Blob(this.pieces).arrayBuffer());
      return wav(audio.getChannelData(0));
    } finally {
      void context.close();
    }
  }

  release() {
    for (const track of this.recorder.stream.getTracks()) track.stop();
  }
}

function wav(samples: Float32Array): Uint8Array {
  const view = new DataView(new ArrayBuffer(HEADER + samples.length * 2));
  const word = (at: number, text: string) => [...text].forEach((letter, n) => view.setUint8(at + n, letter.charCodeAt(0)));
  word(0, "RIFF");
  view.setUint32(4, HEADER - 8 + samples.length * 2, true);
  word(8, "WAVEfmt ");
  view.setUint32(16, 16, true);
  view.setUint16(20, 1, true);
  view.setUint16(22, 1, true);
  view.setUint32(24, RATE, true);
  view.setUint32(28, RATE * 2, true);
  view.setUint16(32, 2, true);
  view.setUint16(34, 16, true);
  word(36, "data");
  view.setUint32(40, samples.length * 2, true);
  samples.forEach((sample, n) => view.setInt16(HEADER + n * 2, Math.max(-1, Math.min(1, sample)) * 0x7fff, true));
  return new Uint8Array(view.buffer);
}
