// Questions to the user at a terminal. Ctrl-C and Ctrl-D end the command, restore the terminal, and change nothing.

import { createInterface } from 'node:readline/promises'
import { toPrintable } from '#core/printable.ts'

/** Asks the user; tests replace it with prepared answers. */
export interface Prompter {
  canAsk(): boolean
  /** @returns the answer without blanks around it; the default for an empty one. */
  ask(question: string, byDefault?: string): Promise<string>
  print(line: string): void
}

/** Whether there is a terminal to ask at. */
export function canAskQuestions(): boolean {
  return process.stdin.isTTY === true && process.stdout.isTTY === true
}

/**
 * @param whenCanceled whole sentences for a user who cancels: what was done, and how to continue. @returns the answer without blanks around it; the
 * default for an empty one.
 */
export async function askQuestion(
  question: string,
  byDefault = '',
  whenCanceled = 'Nothing was changed. To start again, repeat the command.',
): Promise<string> {
  const terminal = createInterface({ input: process.stdin, output: process.stdout })
  const stop = new AbortController()
  const abort = () => stop.abort()
  terminal.once('SIGINT', abort)
  terminal.once('close', abort)
  try {
    const shown = byDefault === '' ? '' : ` [${byDefault}]`
    const answer = (await terminal.question(toPrintable(`${question}${shown}: `), { signal: stop.signal })).trim()
    return answer === '' ? byDefault : answer
  } catch (error) {
    if (!stop.signal.aborted) throw error
    terminal.close()
    process.stderr.write(`\npennon: canceled. ${toPrintable(whenCanceled)}\n`)
    process.exit(130)
  } finally {
    terminal.off('close', abort)
    terminal.close()
  }
}

export const terminalPrompter: Prompter = {
  canAsk: canAskQuestions,
  ask: (question, byDefault) => askQuestion(question, byDefault),
  print: line => void process.stdout.write(`${toPrintable(line)}\n`),
}
