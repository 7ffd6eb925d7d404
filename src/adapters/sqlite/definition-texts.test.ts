import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { DefinitionDelta } from '#adapters/sql/definitions/unchanged-definitions.ts'
import { type JsonObject, parseJson } from '#core/json.ts'
import { aCohort, aNewFlag, aProject } from '../../../tests/support/values.ts'
import { type EncodedDelta, packDefinitions, unpackDefinitions } from './definition-texts.ts'

function changesOf(flagCount: number, filters: string): DefinitionDelta {
  const flags = Array.from({ length: flagCount }, (_, index) => ({
    ...aNewFlag({ key: `f${index}`, filters: parseJson(filters) as JsonObject }),
    ...{ id: index + 1, version: 1, deleted: false, hasExperiment: false, createdBy: null },
    ...{ createdAtMs: 0, updatedAtMs: 0, conditionsSinceMs: 0 },
  }))
  const none = { groupTypes: [], earlyAccessFeatures: [], surveys: [], secretKeyHashes: [] }
  return {
    revision: 3,
    projects: [
      {
        read: { project: aProject(), revision: 3, flags, cohorts: [aCohort()], ...none },
        gone: { flags: [7], cohorts: [] },
      },
    ],
    deletedProjectIds: [9],
  }
}

/** As between threads. */
function sent(changes: DefinitionDelta): EncodedDelta {
  return parseJson(JSON.stringify(packDefinitions(changes))) as unknown as EncodedDelta
}

describe('definitions from a state thread', () => {
  it('arrive unchanged, including number literals and unusual keys', async () => {
    const changes = changesOf(2, '{"__proto__":{"x":1.0},"id":12345678901234567890,"text":"a\\u0000\\"b"}')
    assert.equal(JSON.stringify(await unpackDefinitions(sent(changes))), JSON.stringify(changes))
  })

  it('are read in time slices of the event loop', async () => {
    const packed = sent(changesOf(3_000, `{"list":[${'1.0,'.repeat(50)}1]}`))
    let turns = 0
    const timer = setInterval(() => turns++, 0)
    await unpackDefinitions(packed)
    clearInterval(timer)
    assert.ok(turns > 1, `${turns} turns`)
  })
})
