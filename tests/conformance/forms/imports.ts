// The vectors of the historical import: a record of another product → the events that are sent for it. They need
// `pennon import convert`, which this version does not have, so each fails with that message.

import { spawnSync } from 'node:child_process'
import { fileURLToPath } from 'node:url'
import { CannotRun, type Fields } from '../compare.ts'
import type { VectorCase } from '../vector-case.ts'

const mainPath = fileURLToPath(new URL('../../../src/main.ts', import.meta.url))

export function importCases(vectors: readonly (Fields & { id: string })[]): VectorCase[] {
  let answer: string | undefined
  return vectors.map(({ id }) => ({
    id,
    run: () => {
      answer ??= askForConvert()
      throw new CannotRun(answer)
    },
  }))
}

function askForConvert(): string {
  const args = ['--disable-warning=ExperimentalWarning', mainPath, 'import', 'convert']
  const { stderr } = spawnSync(process.execPath, args, { encoding: 'utf8', input: '' })
  return stderr.includes("unknown command 'import'")
    ? 'there is no command `pennon import convert`'
    : '`pennon import convert` is there, but the runner does not call it yet'
}
