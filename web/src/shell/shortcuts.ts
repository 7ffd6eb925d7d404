import { useEffect, useEffectEvent } from 'react'

const isApple = typeof navigator !== 'undefined' && /Mac|iPhone|iPad/.test(navigator.platform)

/** The name of the key that goes with a letter: `⌘` or `Ctrl+`. */
export const modifierName = isApple ? '⌘' : 'Ctrl+'

/** Calls when a letter is pressed together with `⌘` or `Ctrl`. */
export function useShortcut(letter: string, onPress: () => void): void {
  const press = useEffectEvent(onPress)
  useEffect(() => {
    const listen = (event: KeyboardEvent) => {
      if (!(isApple ? event.metaKey : event.ctrlKey) || event.key.toLowerCase() !== letter) return
      event.preventDefault()
      press()
    }
    addEventListener('keydown', listen)
    return () => removeEventListener('keydown', listen)
  }, [letter])
}
