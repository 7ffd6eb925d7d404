// `continuity_write_vectors`: which override rows an evaluation with an anonymous id writes, and what the flags are.
// Rows are read back from the persons; a vector's ids of persons are labels local to the vector.

import {
  assertKnownFields,
  assertKnownVectorFields,
  exactDifferences,
  type Fields,
  isObject,
  show,
} from '../compare.ts'
import { jsonOf } from '../exchange.ts'
import type { Instance, Instances } from '../instance.ts'
import { createFlags, createPersons, evaluate, type FlagDefinition } from '../state.ts'
import { anyTime, type VectorCase } from '../vector-case.ts'

interface OverrideRow {
  readonly person_id: number
  readonly flag_key: string
  readonly hash_key: string
}

interface ContinuityVector extends Fields {
  readonly id: string
  readonly flags: readonly FlagDefinition[]
  readonly persons: readonly { readonly person_id: number; readonly distinct_ids: readonly string[] }[]
  readonly stored_overrides: readonly OverrideRow[]
  readonly request: Fields
  readonly query?: Readonly<Record<string, string>>
  readonly headers?: Readonly<Record<string, string>>
  readonly expect: { readonly rows_written: readonly OverrideRow[]; readonly values: Fields }
}

export function continuityCases(vectors: readonly ContinuityVector[], projectKey: string): VectorCase[] {
  return vectors.map(vector => ({ id: vector.id, run: instances => runVector(instances, vector, projectKey) }))
}

async function runVector(instances: Instances, vector: ContinuityVector, projectKey: string): Promise<string[]> {
  assertKnownVectorFields(vector, [
    ...['flags', 'persons', 'stored_overrides', 'request', 'query', 'headers', 'expect'],
  ])
  assertKnownFields(vector.expect, 'expect', ['rows_written', 'values'])
  for (const row of [...vector.stored_overrides, ...vector.expect.rows_written])
    assertKnownFields(row, 'an override', ['person_id', 'flag_key', 'hash_key'])
  return instances.with(
    { projectKey, nowMs: Date.parse(anyTime), worker: vector.persons.length > 0 },
    async instance => {
      await createFlags(instance, vector.flags)
      const persons = vector.persons.map(person => {
        assertKnownFields(person, 'a person', ['person_id', 'distinct_ids'])
        const rows = vector.stored_overrides.filter(({ person_id }) => person_id === person.person_id)
        return {
          distinctIds: person.distinct_ids,
          overrides: new Map(rows.map(({ flag_key, hash_key }) => [flag_key, hash_key])),
        }
      })
      await createPersons(instance, persons, vector.flags)

      const before = await overrideRows(instance, vector)
      const wronglySetUp = differencesOfRows(vector.stored_overrides, before, 'stored_overrides')
      if (wronglySetUp.length > 0) return wronglySetUp
      const answer = await evaluate(instance, { ...vector, path: '/flags?v=1' })
      const body = jsonOf(answer.text)
      const values = isObject(body) ? body.featureFlags : answer.text
      const after = await overrideRows(instance, vector)
      return [
        ...exactDifferences(200, answer.status, 'status'),
        ...exactDifferences(vector.expect.values, values, 'values'),
        ...differencesOfRows([...before, ...vector.expect.rows_written], after, 'rows'),
      ]
    },
  )
}

/** Every row of the vector's persons, with the vector's labels. */
async function overrideRows(instance: Instance, { persons }: ContinuityVector): Promise<OverrideRow[]> {
  const rows = persons.map(async ({ person_id, distinct_ids }) => {
    const path = `/api/projects/@current/persons/?distinct_id=${encodeURIComponent(distinct_ids[0]!)}`
    const { results } = await instance.api<{ results: { flag_overrides: Fields[] }[] }>('GET', path)
    return (results[0]?.flag_overrides ?? []).map(row => ({
      person_id,
      flag_key: String(row.feature_flag_key),
      hash_key: String(row.hash_key),
    }))
  })
  return (await Promise.all(rows)).flat()
}

function differencesOfRows(expected: readonly OverrideRow[], actual: readonly OverrideRow[], what: string): string[] {
  const text = (rows: readonly OverrideRow[]) =>
    rows.map(({ person_id, flag_key, hash_key }) => `${person_id} ${flag_key} ${hash_key}`).sort()
  const [expectedRows, actualRows] = [text(expected), text(actual)]
  return show(expectedRows) === show(actualRows) ? [] : exactDifferences(expectedRows, actualRows, what)
}
