// `npm run vectors -- FILE…`: runs vector files against the real service. Prints one line per vector, `ok ID` or `not
// ok ID: why`, then `N passed, N failed`; exits with 1 when any failed. A vector that cannot be run has failed. The
// form of a file decides how its vectors are run, never their ids.

import { readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { setTimeout as sleep } from 'node:timers/promises'
import { CannotRun, type Fields, isObject, parseVectorFile } from './compare.ts'
import { continuityCases } from './forms/continuity.ts'
import { decodingCases } from './forms/decoding.ts'
import { exchangeCases } from './forms/exchanges.ts'
import { flagCases } from './forms/flags.ts'
import { hashCases } from './forms/hash.ts'
import { importCases } from './forms/imports.ts'
import { type IngestionMeta, ingestionCases } from './forms/ingestion.ts'
import { isPurePart, pureCases } from './forms/pure.ts'
import { responseCases } from './forms/responses.ts'
import { createInstances, type Instances } from './instance.ts'
import type { FlagDefinition } from './state.ts'
import type { VectorCase } from './vector-case.ts'

const evaluationProjectKey = 'phc_test'
const vectorMsMax = 180_000
/** Parts of a file that are read but are not vectors. */
const otherParts = ['about', 'meta', 'response_flags', '$comment', 'version', 'conventions']
const usage = `npm run vectors -- FILE… [--only=REGEXP] [--whole=REGEXP]

Runs every vector of the files against the service. A file is of the form of one of tests/conformance/*-vectors.json.
  --only=REGEXP   runs only the vectors with these ids
  --whole=REGEXP  the vectors with these ids list all that is stored; more of it is a difference
`

await main()

async function main(): Promise<void> {
  const { files, only, isWhole } = readArguments(process.argv.slice(2))
  // The worker accepts a test clock only from a test.
  process.env.NODE_ENV = 'test'
  const cases = files
    .flatMap(path => casesOf(readFile(path), path, isWhole))
    .filter(({ id }) => only === null || only.test(id))
  if (cases.length === 0) throw new Error(`there are no vectors in ${files.join(', ')} that could be run`)
  const instances = createInstances()
  let failedCount = 0
  try {
    const results = runAll(cases, instances)
    for (const [index, { id }] of cases.entries()) {
      const differences = await results[index]!
      if (differences.length > 0) failedCount++
      process.stdout.write(differences.length === 0 ? `ok ${id}\n` : `not ok ${id}: ${oneLine(differences)}\n`)
    }
  } finally {
    await instances.close()
  }
  process.stdout.write(`${cases.length - failedCount} passed, ${failedCount} failed\n`)
  process.exit(failedCount > 0 ? 1 : 0)
}

interface Arguments {
  readonly files: readonly string[]
  readonly only: RegExp | null
  readonly isWhole: (id: string) => boolean
}

function readArguments(args: readonly string[]): Arguments {
  const files = args.filter(arg => !arg.startsWith('--'))
  const [only, whole] = ['--only=', '--whole='].map(name => {
    const pattern = args.find(arg => arg.startsWith(name))?.slice(name.length)
    return pattern === undefined ? null : new RegExp(pattern)
  })
  if (args.includes('--help')) {
    process.stdout.write(usage)
    process.exit(0)
  }
  if (files.length === 0) {
    process.stderr.write(usage)
    process.exit(2)
  }
  return { files, only: only!, isWhole: id => whole?.test(id) ?? false }
}

function readFile(path: string): Fields {
  const file = parseVectorFile(readFileSync(path, 'utf8'))
  if (!isObject(file)) throw new Error(`${path} is no file of vectors`)
  return file
}

function casesOf(file: Fields, path: string, isWhole: Arguments['isWhole']): VectorCase[] {
  return Object.entries(file)
    .filter(([part]) => !otherParts.includes(part))
    .flatMap(([part, vectors]) => {
      const list = vectors as never
      switch (part) {
        case 'hash_vectors':
          return hashCases(list)
        case 'flag_vectors':
          return flagCases(list, evaluationProjectKey)
        case 'decoding_vectors':
          return decodingCases(list, evaluationProjectKey)
        case 'response_vectors':
          return responseCases(list, (file.response_flags ?? []) as FlagDefinition[], evaluationProjectKey)
        case 'continuity_write_vectors':
          return continuityCases(list, evaluationProjectKey)
        case 'vectors':
          return isObject(file.meta) ? ingestionCases(list, file.meta as IngestionMeta, isWhole) : importCases(list)
        case 'exchange_vectors':
          return exchangeCases(list, evaluationProjectKey, isWhole)
        default:
          return isPurePart(part) ? pureCases(part, list) : unknownForm(part, vectors, path)
      }
    })
}

/** Vectors of an unknown form each fail. */
function unknownForm(part: string, vectors: unknown, path: string): VectorCase[] {
  const ids = Array.isArray(vectors)
    ? vectors.map((vector, index) => String(vector?.id ?? `${part}[${index}]`))
    : [part]
  return ids.map(id => ({
    id,
    run: () => {
      throw new CannotRun(`${path} has a part that the runner does not know: ${part}`)
    },
  }))
}

/** Runs as many vectors at once as there are processors; each promise resolves when its vector is done. */
function runAll(cases: readonly VectorCase[], instances: Instances): readonly Promise<readonly string[]>[] {
  const waiting = cases.map(vectorCase => ({ vectorCase, ...Promise.withResolvers<readonly string[]>() }))
  const queue = [...waiting]
  const lane = async () => {
    for (let next = queue.shift(); next !== undefined; next = queue.shift()) {
      next.resolve(await runOne(next.vectorCase, instances))
    }
  }
  for (let index = 0; index < Math.max(2, availableParallelism()); index++) void lane()
  return waiting.map(({ promise }) => promise)
}

async function runOne(vectorCase: VectorCase, instances: Instances): Promise<readonly string[]> {
  const timeout = new AbortController()
  const late = sleep(vectorMsMax, [`nothing after ${vectorMsMax / 1000} s`], { signal: timeout.signal })
  late.catch(() => undefined) // the vector came first
  try {
    return await Promise.race([vectorCase.run(instances), late])
  } catch (cause) {
    return [cause instanceof Error ? cause.message : String(cause)]
  } finally {
    timeout.abort()
  }
}

function oneLine(differences: readonly string[]): string {
  return differences.join('; ').replaceAll(/\s+/g, ' ')
}
