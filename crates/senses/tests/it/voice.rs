//! Tests that synthesized speech is transcribed back to the same words.

use std::sync::Arc;

use quintet_kernel::port::{
    Audio, Recognizer as _, SenseError, SpeechSynthesizer as _, Transcriber as _, Transcript,
    TranscriptionStream,
};
use quintet_senses::{LocalRecognizer, LocalSpeaker, StreamTranscriber, WakeWord};

use crate::settings;

const SENTENCES: &[&str] = &[
    "Open the settings and turn on the dark mode.",
    "The quick brown fox jumps over the lazy dog.",
    "Please send an email to the team about tomorrow's meeting.",
    "I have read the report, and I will read it again.",
    "There is a new message from your sister on the phone.",
    "Close all windows and start the music player.",
    "She is running the tests in the other terminal.",
    "What is the weather going to be like this weekend?",
];
/// One word in ten may be wrong.
const ERROR_LIMIT: f64 = 0.1;
/// Higher, because espeak's voice is synthetic and the model was trained on people.
const ESPEAK_ERROR_LIMIT: f64 = 0.35;

fn transcriber() -> StreamTranscriber {
    StreamTranscriber::new(settings(), Arc::new(LocalRecognizer::new(settings())))
}

fn words(text: &str) -> Vec<String> {
    let plain =
        |letter: char| if letter.is_alphanumeric() || letter == '\'' { letter } else { ' ' };
    let text: String = text.to_lowercase().chars().map(plain).collect();
    text.split_whitespace().map(str::to_owned).collect()
}

/// The edit distance of two texts, in words.
fn errors(expected: &[String], found: &[String]) -> usize {
    let mut row: Vec<usize> = (0..=found.len()).collect();
    for (above, word) in expected.iter().enumerate() {
        let mut diagonal = row[0];
        row[0] = above + 1;
        for (at, other) in found.iter().enumerate() {
            let cost = diagonal + usize::from(word != other);
            diagonal = row[at + 1];
            row[at + 1] = cost.min(row[at] + 1).min(diagonal + 1);
        }
    }
    row[found.len()]
}

/// The transcripts of audio that arrives in pieces of 100 ms.
async fn transcripts(stream: &dyn TranscriptionStream, audio: &Audio) -> Vec<Transcript> {
    let push = async {
        for piece in audio.samples.chunks(audio.rate as usize / 10) {
            let piece = Audio { samples: piece.to_vec(), rate: audio.rate };
            stream.push(piece).await.unwrap();
        }
        stream.finish().await;
    };
    let read = async {
        let mut all = Vec::new();
        while let Some(transcript) = stream.next().await {
            all.push(transcript.unwrap());
        }
        all
    };
    tokio::join!(push, read).1
}

fn text(transcripts: &[Transcript]) -> String {
    let texts = transcripts.iter().filter_map(|transcript| match transcript {
        Transcript::Final(text) => Some(text.as_str()),
        Transcript::Partial(_) | Transcript::UtteranceEnd => None,
    });
    texts.collect::<Vec<_>>().join(" ")
}

/// Synthesizes and transcribes all sentences, and checks the share of wrong words.
async fn check(name: &str, limit: f64, speak: impl AsyncFn(&str) -> Audio) {
    let transcriber = transcriber();
    let (mut wrong, mut all) = (0, 0);
    for sentence in SENTENCES {
        let audio = speak(sentence).await;
        let stream = transcriber.open().unwrap();
        let found = text(&transcripts(&*stream, &audio).await);
        let (expected, found_words) = (words(sentence), words(&found));
        wrong += errors(&expected, &found_words);
        all += expected.len();
        eprintln!("{name}: {sentence:?} → {found:?}");
    }
    eprintln!("{name}: {wrong} of {all} words wrong");
    assert!((wrong as f64) <= limit * all as f64, "{name}: {wrong} of {all} words wrong");
}

#[tokio::test]
async fn spoken_sentences_are_transcribed() {
    let speaker = LocalSpeaker::new(settings());
    assert!(!speaker.is_loaded());
    check("hibari", ERROR_LIMIT, async |sentence| {
        let audio = speaker.speak(sentence.into()).await.unwrap();
        assert_eq!(audio.rate, 24_000);
        audio
    })
    .await;
}

#[tokio::test]
async fn another_voice_is_transcribed() {
    let dir = tempfile::tempdir().unwrap();
    if espeak("test", dir.path()).is_none() {
        return println!("espeak-ng is not installed: its voice was not tested");
    }
    check("espeak-ng", ESPEAK_ERROR_LIMIT, async |sentence| espeak(sentence, dir.path()).unwrap())
        .await;
}

#[expect(clippy::disallowed_methods, reason = "a test runs an independent voice")]
fn espeak(sentence: &str, dir: &std::path::Path) -> Option<Audio> {
    let file = dir.join("spoken.wav");
    let mut command = std::process::Command::new("espeak-ng");
    let status = command.args(["-v", "en-us", "-s", "150", "-w"]).arg(&file).arg(sentence).status();
    status.ok().filter(std::process::ExitStatus::success)?;
    let wav = std::fs::read(&file).ok()?;
    let rate = u32::from_le_bytes(wav.get(24..28)?.try_into().ok()?);
    let samples = wav.get(44..)?.chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]]));
    Some(Audio { samples: samples.collect(), rate })
}

#[tokio::test]
async fn partials_grow_and_each_utterance_ends() {
    let speaker = LocalSpeaker::new(settings());
    let first = speaker.speak(SENTENCES[2].into()).await.unwrap();
    let second = speaker.speak(SENTENCES[0].into()).await.unwrap();
    let pause = vec![0; 24_000];
    let samples = [&first.samples[..], &pause, &second.samples, &pause].concat();
    let stream = transcriber().open().unwrap();
    let all = transcripts(&*stream, &Audio { samples, rate: 24_000 }).await;
    let marks: String = all
        .iter()
        .map(|transcript| match transcript {
            Transcript::Partial(text) => {
                assert!(!text.is_empty());
                'p'
            }
            Transcript::Final(_) => 'f',
            Transcript::UtteranceEnd => 'e',
        })
        .collect();
    let without_partials = marks.replace('p', "");
    assert_eq!(without_partials, "fefe", "{all:?}");
    assert!(marks.starts_with('p') || marks.starts_with('f'));
}

#[tokio::test]
async fn silence_and_noise_and_odd_rates() {
    let stream = transcriber().open().unwrap();
    for rate in [0, 1, 10_000_000] {
        let refused = stream.push(Audio { samples: vec![0; 100], rate }).await.unwrap_err();
        assert!(matches!(refused, SenseError::BadInput(_)), "{refused:?}");
    }
    // An hour of silence, at changing rates.
    let push = async {
        for (rate, seconds) in [(8_000, 20), (48_000, 20), (16_000, 3560)] {
            for _ in 0..seconds {
                stream.push(Audio { samples: vec![0; rate], rate: rate as u32 }).await.unwrap();
            }
        }
        stream.push(Audio { samples: Vec::new(), rate: 16_000 }).await.unwrap();
        stream.finish().await;
    };
    let ((), next) = tokio::join!(push, stream.next());
    assert_eq!(next, None);
}

#[tokio::test]
async fn starting_over_discards_the_utterance() {
    let speaker = LocalSpeaker::new(settings());
    let audio = speaker.speak(SENTENCES[1].into()).await.unwrap();
    let stream = transcriber().open().unwrap();
    let half = Audio { samples: audio.samples[..audio.samples.len() / 2].to_vec(), ..audio };
    let push = async {
        stream.push(half.clone()).await.unwrap();
        stream.start_over().await;
        stream.finish().await;
    };
    let read = async {
        let mut all = Vec::new();
        while let Some(transcript) = stream.next().await {
            all.push(transcript.unwrap());
        }
        all
    };
    let ((), all) = tokio::join!(push, read);
    assert!(all.iter().all(|transcript| matches!(transcript, Transcript::Partial(_))), "{all:?}");
}

#[tokio::test]
async fn concurrent_streams_are_transcribed() {
    let speaker = LocalSpeaker::new(settings());
    let transcriber = transcriber();
    let mut spoken = Vec::new();
    for sentence in &SENTENCES[..4] {
        spoken.push(speaker.speak((*sentence).into()).await.unwrap());
    }
    let streams = spoken.iter().map(async |audio| {
        let stream = transcriber.open().unwrap();
        words(&text(&transcripts(&*stream, audio).await))
    });
    let all = futures_util::future::join_all(streams).await;
    for (sentence, found) in SENTENCES.iter().zip(all) {
        assert!(errors(&words(sentence), &found) <= 2, "{sentence}: {found:?}");
    }
}

#[tokio::test]
async fn streams_are_bounded() {
    let transcriber = transcriber();
    let mut streams = Vec::new();
    let refused = loop {
        match transcriber.open() {
            Ok(stream) => streams.push(stream),
            Err(error) => break error,
        }
    };
    assert_eq!((streams.len(), refused), (256, SenseError::Busy));
    streams.pop();
    assert!(transcriber.open().is_ok());
}

#[tokio::test]
async fn odd_texts_are_spoken_or_silent() {
    let speaker = LocalSpeaker::new(settings());
    for silent in ["", " ", "👋🎉", "...", "\0", "—"] {
        let audio = speaker.speak(silent.into()).await.unwrap();
        assert_eq!(audio.samples, Vec::<i16>::new(), "{silent:?}");
    }
    // An English voice skips Chinese and speaks the rest of the sentence.
    assert!(!speaker.speak("你好 means hello".into()).await.unwrap().samples.is_empty());
    assert!(
        !speaker.speak("xfce4-terminal v1.2.3 @ 7:30".into()).await.unwrap().samples.is_empty()
    );
    let long = "word, ".repeat(300);
    assert!(!speaker.speak(long).await.unwrap().samples.is_empty());
    let error = speaker.speak("a".repeat(100_000)).await.unwrap_err();
    assert!(matches!(error, SenseError::BadInput(_)), "{error}");
}

#[tokio::test]
async fn missing_weights_are_named() {
    let dir = tempfile::tempdir().unwrap();
    let settings = quintet_senses::Settings { models_dir: dir.path().into(), ..settings() };
    let speaker = LocalSpeaker::new(settings.clone());
    assert_eq!(speaker.ready(), Err(SenseError::MissingWeights("speech")));
    let recognizer = LocalRecognizer::new(settings.clone());
    assert_eq!(recognizer.ready(), Err(SenseError::MissingWeights("transcription")));
    let transcriber = StreamTranscriber::new(settings, Arc::new(recognizer));
    let error = transcriber.open().err();
    assert_eq!(error, Some(SenseError::MissingWeights("transcription")));
}

/// Number of detections of the wake word in audio that arrives in pieces of 100 ms.
fn detections(audio: &Audio) -> usize {
    let mut wake_word = WakeWord::load(&settings()).unwrap();
    let mut detected = 0;
    let silence = vec![0; audio.rate as usize];
    let samples = [&silence[..], &audio.samples, &silence].concat();
    for piece in samples.chunks(audio.rate as usize / 10) {
        let piece = Audio { samples: piece.to_vec(), rate: audio.rate };
        let end = wake_word.push(&piece).unwrap();
        detected += usize::from(end.is_some());
        assert!(end.is_none_or(|end| end <= piece.samples.len()));
    }
    detected
}

#[tokio::test]
async fn the_wake_word_is_detected_and_nothing_else() {
    let speaker = LocalSpeaker::new(settings());
    for said in ["Hey Quintet!", "Hey Quintet, open the settings."] {
        let audio = speaker.speak(said.into()).await.unwrap();
        assert_eq!(detections(&audio), 1, "{said}");
    }
    for other in SENTENCES.iter().chain(&["Hey Quentin, come here.", "A string quintet played."]) {
        let audio = speaker.speak((*other).into()).await.unwrap();
        assert_eq!(detections(&audio), 0, "{other}");
    }
    let dir = tempfile::tempdir().unwrap();
    if let Some(audio) = espeak("hey quintet", dir.path()) {
        assert_eq!(detections(&audio), 1, "espeak-ng");
        assert_eq!(detections(&espeak("hey cousin, quit it", dir.path()).unwrap()), 0);
    }
}
