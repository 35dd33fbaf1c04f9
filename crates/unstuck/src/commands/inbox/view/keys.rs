//! The keys that mean something here, whatever the terminal calls them.

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// What a person did at the keyboard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Key {
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    Enter,
    Escape,
    Backspace,
    /// Ctrl-U: all of a line is taken back.
    Clear,
    /// Ctrl-C.
    Interrupt,
    Letter(char),
    Pasted(String),
}

/// The key that an event stands for; none where it means nothing here.
pub(super) fn key(event: Event) -> Option<Key> {
    match event {
        Event::Key(pressed) if pressed.kind != KeyEventKind::Release => pressed_key(pressed),
        Event::Paste(text) => Some(Key::Pasted(text)),
        _ => None,
    }
}

fn pressed_key(pressed: KeyEvent) -> Option<Key> {
    let control = pressed.modifiers.contains(KeyModifiers::CONTROL);
    match pressed.code {
        KeyCode::Char('c') if control => Some(Key::Interrupt),
        KeyCode::Char('u') if control => Some(Key::Clear),
        KeyCode::Char(_) if control || pressed.modifiers.contains(KeyModifiers::ALT) => None,
        KeyCode::Char(letter) => Some(Key::Letter(letter)),
        KeyCode::Up => Some(Key::Up),
        KeyCode::Down => Some(Key::Down),
        KeyCode::PageUp => Some(Key::PageUp),
        KeyCode::PageDown => Some(Key::PageDown),
        KeyCode::Home => Some(Key::Home),
        KeyCode::End => Some(Key::End),
        KeyCode::Enter => Some(Key::Enter),
        KeyCode::Esc => Some(Key::Escape),
        KeyCode::Backspace => Some(Key::Backspace),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pressed(code: KeyCode, modifiers: KeyModifiers) -> Option<Key> {
        key(Event::Key(KeyEvent::new(code, modifiers)))
    }

    #[test]
    fn a_letter_with_control_is_no_answer() {
        let a = KeyCode::Char('a');
        assert_eq!(pressed(a, KeyModifiers::NONE), Some(Key::Letter('a')));
        assert_eq!(pressed(a, KeyModifiers::CONTROL), None);
        assert_eq!(pressed(a, KeyModifiers::ALT), None);
        assert_eq!(
            pressed(KeyCode::Char('c'), KeyModifiers::CONTROL),
            Some(Key::Interrupt)
        );
    }
}
