// `cookieless_hash_vectors`, `root_domain_vectors`, `cookieless_day_vectors`: pure functions of the core against what the
// vectors expect of them.

import { findRootDomain } from '#core/cookieless/root-domain.ts'
import { deriveStatelessSessionId, findVisitorDay, isDayOpen } from '#core/cookieless/visitor-day.ts'
import {
  buildHashedDeviceId,
  buildHashedDistinctId,
  computeVisitorHash,
  encodeVisitorHash,
  hashIdentifiedVisitor,
} from '#core/cookieless/visitor-hash.ts'
import { assertKnownFields, assertKnownVectorFields, CannotRun, exactDifferences, type Fields } from '../compare.ts'
import type { VectorCase } from '../vector-case.ts'

interface PureForm {
  readonly inputs: readonly string[]
  /** Field of the vector that holds the expected output. */
  readonly output: string
  /** Fields of an output that is an object, all of them required. */
  readonly outputFields?: readonly string[]
}

export const pureForms = {
  cookieless_hash_vectors: {
    inputs: ['salt', 'team_id', 'ip', 'root_domain', 'user_agent', 'hash_extra', 'identifies'],
    output: 'expect',
    outputFields: ['hash', 'distinct_id', 'device_id'],
  },
  root_domain_vectors: { inputs: ['host'], output: 'root_domain' },
  cookieless_day_vectors: {
    inputs: ['timestamp', 'timezone', 'project_timezone', 'received_at', 'base_hash'],
    output: 'expect',
    outputFields: ['day', 'is_open', 'session_id'],
  },
} satisfies Readonly<Record<string, PureForm>>

export type PurePart = keyof typeof pureForms

/** From the inputs of a vector to its output. */
export type PureFunctions = { readonly [part in PurePart]?: (inputs: Fields) => unknown }

export type PureVector = Fields & { readonly id: string }

/** The functions of the core, by the vectors that show them. */
const coreFunctions: PureFunctions = {
  cookieless_hash_vectors: ({ salt, team_id, ip, root_domain, user_agent, hash_extra, identifies }) => {
    const key = Buffer.from(salt as string, 'base64')
    const parts = { address: ip as string, userAgent: user_agent as string, extra: hash_extra as string }
    const hash = computeVisitorHash(key, { projectId: team_id as number, ...parts }, root_domain as string)
    return {
      hash: Buffer.from(hash).toString('base64'),
      distinct_id: buildHashedDistinctId(encodeVisitorHash(hashIdentifiedVisitor(key, hash, identifies as number))),
      device_id: buildHashedDeviceId(encodeVisitorHash(hash)),
    }
  },
  root_domain_vectors: ({ host }) => findRootDomain(host as string),
  cookieless_day_vectors: ({ timestamp, timezone, project_timezone, received_at, base_hash }) => {
    const zones = [timezone as string | null, project_timezone as string]
    const { day, startMs } = findVisitorDay(Date.parse(timestamp as string), ...zones)
    const hash = Buffer.from(base_hash as string, 'base64')
    const isOpen = isDayOpen(day, Date.parse(received_at as string))
    return { day, is_open: isOpen, session_id: deriveStatelessSessionId(startMs, hash) }
  },
}

export function isPurePart(part: string): part is PurePart {
  return Object.hasOwn(pureForms, part)
}

export function pureCases(part: PurePart, vectors: readonly PureVector[], functions = coreFunctions): VectorCase[] {
  return vectors.map(vector => ({ id: vector.id, run: () => pureDifferences(part, vector, functions) }))
}

function pureDifferences(part: PurePart, vector: PureVector, functions: PureFunctions): string[] {
  const { inputs, output, outputFields }: PureForm = pureForms[part]
  assertKnownVectorFields(vector, [...inputs, output])
  const missing = [...inputs, output].find(name => !Object.hasOwn(vector, name))
  if (missing !== undefined) throw new CannotRun(`the vector has no ${missing}`)
  if (outputFields !== undefined) assertKnownFields(vector[output] as Fields, output, outputFields)
  const compute = functions[part]
  if (compute === undefined) throw new CannotRun(`the core has no function for ${part} yet`)
  return exactDifferences(vector[output], compute(vector), output)
}
