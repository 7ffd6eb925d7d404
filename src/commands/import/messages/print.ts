// Printing of the import commands: names and values of a source, or text of a service, must not control the terminal.

import { printable, printableName } from '#core/printable.ts'

export function printLines(lines: readonly string[]): void {
  process.stdout.write(`${lines.map(printable).join('\n')}\n`)
}

/** Prints JSON on one line, which itself escapes only the ASCII control characters. */
export function printJson(value: unknown): void {
  printLines([JSON.stringify(value)])
}

/** Prints a text file, unchanged except for what a terminal would obey. */
export function printText(text: string): void {
  process.stdout.write(text.split('\n').map(printableName).join('\n'))
}
