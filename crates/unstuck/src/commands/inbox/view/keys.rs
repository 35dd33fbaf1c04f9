//! Keys of the inbox view, independent of the terminal's key codes.

use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// A key press that the view handles.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum KeyPress {
    Up,
    Down,
    PageUp,
    PageDown,
    Home,
    End,
    Enter,
    Escape,
    Backspace,
    /// Ctrl-U: clears the line.
    Clear,
    /// Ctrl-C.
    Interrupt,
    Char(char),
    Pasted(String),
}

/// Converts a terminal event to a key press; none for keys without a function.
pub(super) fn from_event(event: Event) -> Option<KeyPress> {
    match event {
        Event::Key(pressed) if pressed.kind != KeyEventKind::Release => from_key_event(pressed),
        Event::Paste(text) => Some(KeyPress::Pasted(text)),
        _ => None,
    }
}

fn from_key_event(pressed: KeyEvent) -> Option<KeyPress> {
    let control = pressed.modifiers.contains(KeyModifiers::CONTROL);
    match pressed.code {
        KeyCode::Char('c') if control => Some(KeyPress::Interrupt),
        KeyCode::Char('u') if control => Some(KeyPress::Clear),
        KeyCode::Char(_) if control || pressed.modifiers.contains(KeyModifiers::ALT) => None,
        KeyCode::Char(letter) => Some(KeyPress::Char(letter)),
        KeyCode::Up => Some(KeyPress::Up),
        KeyCode::Down => Some(KeyPress::Down),
        KeyCode::PageUp => Some(KeyPress::PageUp),
        KeyCode::PageDown => Some(KeyPress::PageDown),
        KeyCode::Home => Some(KeyPress::Home),
        KeyCode::End => Some(KeyPress::End),
        KeyCode::Enter => Some(KeyPress::Enter),
        KeyCode::Esc => Some(KeyPress::Escape),
        KeyCode::Backspace => Some(KeyPress::Backspace),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pressed(code: KeyCode, modifiers: KeyModifiers) -> Option<KeyPress> {
        from_event(Event::Key(KeyEvent::new(code, modifiers)))
    }

    #[test]
    fn ctrl_letter_is_not_an_answer() {
        let a = KeyCode::Char('a');
        assert_eq!(pressed(a, KeyModifiers::NONE), Some(KeyPress::Char('a')));
        assert_eq!(pressed(a, KeyModifiers::CONTROL), None);
        assert_eq!(pressed(a, KeyModifiers::ALT), None);
        assert_eq!(
            pressed(KeyCode::Char('c'), KeyModifiers::CONTROL),
            Some(KeyPress::Interrupt)
        );
    }
}
