import { useEffect, useEffectEvent } from 'react'
import { isApple } from '../components/is-apple.ts'

/** The name of the key that goes with a letter: `⌘` or `Ctrl+`. */
export const modifierName = isApple ? '⌘' : 'Ctrl+'

/** Calls when a letter is pressed together with `⌘` or `Ctrl`, and no other modifier. */
export function useShortcut(letter: string, onPress: () => void): void {
  const press = useEffectEvent(onPress)
  useEffect(() => {
    const listen = (event: KeyboardEvent) => {
      if (!(isApple ? event.metaKey : event.ctrlKey) || !isPlainLetter(event, letter)) return
      event.preventDefault()
      press()
    }
    addEventListener('keydown', listen)
    return () => removeEventListener('keydown', listen)
  }, [letter])
}

/** A layout without Latin letters has the shortcut where a keyboard with them has it. */
export function isPlainLetter(
  { key, code, shiftKey, altKey }: Pick<KeyboardEvent, 'key' | 'code' | 'shiftKey' | 'altKey'>,
  letter: string,
): boolean {
  if (shiftKey || altKey) return false
  return /^[a-z]$/i.test(key) ? key.toLowerCase() === letter : code === `Key${letter.toUpperCase()}`
}
