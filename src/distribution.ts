// How this Pennon came here: a clone has its documentation and npm beside it, an image has the program alone. Texts for
// people name only what is there.

import { existsSync } from 'node:fs'

const isClone = existsSync(new URL('../README.md', import.meta.url))

/** How a person calls a command of Pennon here, in the folder of a clone too: `bin/pennon doctor`, `pennon doctor`. */
export function pennonCommand(command: string): string {
  return isClone ? `bin/pennon ${command}` : `pennon ${command}`
}

export const startCommand = isClone ? 'npm start' : 'pennon serve'

/** How packages come back that are missing. */
export const reinstall = isClone ? 'run `npm ci`' : 'take the image again'

/** A sentence with a blank before it; nothing where there is no README. */
export const moreInReadme = isClone ? ' More: README.md' : ''

/** A hint in brackets, with a blank before it, where the page is there to be read; else nothing. */
export function inDocs(page: string): string {
  return isClone ? ` (docs/${page})` : ''
}
