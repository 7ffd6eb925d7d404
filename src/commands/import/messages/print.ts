// How the commands of an import print: names and values of a source, or words of a service, must not steer the terminal.

import { printable, printableName } from '#core/printable.ts'

export function printLines(lines: readonly string[]): void {
  process.stdout.write(`${lines.map(printable).join('\n')}\n`)
}

/** On one line. JSON itself escapes no more than the controls of ASCII. */
export function printJson(value: unknown): void {
  printLines([JSON.stringify(value)])
}

/** A file that was written to be read, as it is but for what a terminal would obey. */
export function printText(text: string): void {
  process.stdout.write(text.split('\n').map(printableName).join('\n'))
}
