import icons from 'virtual:icons'
import type { IconName } from './icon-names.ts'

/** @param size in px, at the usual size of text: it grows with the text. */
export function Icon({ name, size = 16, className }: { name: IconName; size?: number; className?: string }) {
  return (
    <svg width={`${size / 16}rem`} height={`${size / 16}rem`} aria-hidden="true" className={className}>
      <use href={`${icons}#${name}`} />
    </svg>
  )
}
