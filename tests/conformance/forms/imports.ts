// The vectors of the historical import: a record of another product → the events that are sent for it. Each runs in a
// separate process of `pennon import convert`, since each begins with an empty ledger.

import { execFile } from 'node:child_process'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import {
  assertKnownFields,
  assertKnownVectorFields,
  CannotRun,
  exactDifferences,
  type Fields,
  parseVectorFile,
} from '../compare.ts'
import type { VectorCase } from '../vector-case.ts'

const mainPath = fileURLToPath(new URL('../../../src/main.ts', import.meta.url))
/** The clock of all import vectors. Source: docs/wire/import.md §9. */
const now = '2026-01-15T00:00:00Z'

export interface ImportVector extends Fields {
  readonly id: string
  readonly source: string
  /** A parsed record, or one line as it is written: of JSON, or a header and a row of CSV. */
  readonly input: object | string
  readonly format?: string
  readonly config?: object
  readonly expected: { readonly events?: readonly Fields[]; readonly rejected?: Fields; readonly skipped?: string }
}

/** Prints the answers to the records of a vector, one line each. */
export type Convert = (vector: ImportVector) => Promise<readonly string[]> | readonly string[]

export function importCases(vectors: readonly ImportVector[], convert: Convert = convertByCommand): VectorCase[] {
  return vectors.map(vector => ({ id: vector.id, run: () => differencesOf(vector, convert) }))
}

async function differencesOf(vector: ImportVector, convert: Convert): Promise<readonly string[]> {
  assertKnownVectorFields(vector, ['spec', 'input', 'format', 'config', 'expected'])
  assertKnownFields(vector.expected, '`expected`', ['events', 'rejected', 'skipped'])
  const lines = await convert(vector)
  if (lines.length !== 1) throw new CannotRun(`it has to be one record, and gave ${lines.length} answers`)
  return exactDifferences(withoutExplanations(vector.expected), parseVectorFile(lines[0]!), 'answer')
}

/** @throws CannotRun with what the command says when it refuses. */
async function convertByCommand({ source, input, format, config }: ImportVector): Promise<string[]> {
  const folder = mkdtempSync(join(tmpdir(), 'pennon-import-vector-'))
  try {
    const args = ['import', 'convert', '--source', source, '--now', now]
    if (format !== undefined) args.push('--format', format)
    if (config !== undefined) {
      const path = join(folder, 'config.json')
      writeFileSync(path, JSON.stringify(config))
      args.push('--config', path)
    }
    const running = promisify(execFile)(process.execPath, ['--disable-warning=ExperimentalWarning', mainPath, ...args])
    // It refuses before it reads: then the answer is on stderr.
    running.child.stdin!.on('error', () => undefined)
    running.child.stdin!.end(bytesOf(input))
    const { stdout } = await running
    return stdout.trimEnd().split('\n')
  } catch (error) {
    throw new CannotRun(String((error as { stderr?: unknown }).stderr ?? error))
  } finally {
    rmSync(folder, { recursive: true })
  }
}

function bytesOf(input: object | string): Buffer {
  const text = typeof input === 'string' ? input : JSON.stringify(input)
  // A lone surrogate has no UTF-8 form: it represents invalid bytes.
  const parts = text
    .split(/(\p{Surrogate})/u)
    .map(part => (/^\p{Surrogate}$/u.test(part) ? halfPair(part) : Buffer.from(part)))
  return Buffer.concat([...parts, Buffer.from(text.endsWith('\n') ? '' : '\n')])
}

function halfPair(half: string): Buffer {
  const code = half.charCodeAt(0)
  return Buffer.from([0xe0 | (code >> 12), 0x80 | ((code >> 6) & 0x3f), 0x80 | (code & 0x3f)])
}

/** Without `uuid_from`, which explains how each uuid is derived. */
function withoutExplanations(expected: ImportVector['expected']): Fields {
  if (expected.events === undefined) return expected
  return { ...expected, events: expected.events.map(({ uuid_from: _, ...event }) => event) }
}
