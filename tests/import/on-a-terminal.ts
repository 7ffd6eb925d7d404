// Runs a command on a separate terminal with `script` of util-linux, waits for its output, and presses keys.

import { type ChildProcessWithoutNullStreams, spawn } from 'node:child_process'
import { resolve } from 'node:path'
import { eventually } from '../support/eventually.ts'

export const ctrlC = '\u0003'
export const ctrlD = '\u0004'

export class OnTerminal {
  readonly #child: ChildProcessWithoutNullStreams
  #shown = ''
  #read = 0
  #exitCode: number | null = null

  /**
   * @param settings the whole environment except PATH and HOME. The terminal's settings are printed after the command.
   * @param cwd the working folder of the command.
   */
  constructor(settings: Readonly<Record<string, string>>, cwd: string, ...args: readonly string[]) {
    const words = [process.execPath, '--disable-warning=ExperimentalWarning', resolve('src/main.ts'), ...args]
    const command = words.map(word => `'${word.replaceAll("'", `'\\''`)}'`).join(' ')
    const env = { PATH: process.env.PATH, HOME: process.env.HOME, TERM: 'xterm', NO_COLOR: '1', ...settings }
    const line = `stty cols 200; ${command}; code=$?; stty -a; exit $code`
    this.#child = spawn('script', ['-qec', line, '/dev/null'], { env, cwd })
    this.#child.stdout.on('data', chunk => {
      this.#shown += chunk
    })
    this.#child.once('exit', code => {
      this.#exitCode = code ?? -1
    })
  }

  get shown(): string {
    return this.#shown
  }

  /** Waits for text after the last match, then presses keys. */
  async answer(question: RegExp, keys: string): Promise<void> {
    await eventually(
      () => {
        const found = question.exec(this.#shown.slice(this.#read))
        if (found !== null) this.#read += found.index + found[0].length
        return found !== null || this.#exitCode !== null
      },
      { what: `${question} on the terminal (${this.#shown})` },
    )
    this.#child.stdin.write(keys)
  }

  /** @returns the exit code of the command. */
  async ended(): Promise<number> {
    await eventually(() => this.#exitCode !== null, { what: `the end (${this.#shown})` })
    return this.#exitCode!
  }

  /** Whether the terminal again echoes input and reads it by line. */
  isSane(): boolean {
    return / icanon /.test(this.#shown) && / echo /.test(this.#shown)
  }

  stop(): void {
    this.#child.kill()
  }
}
