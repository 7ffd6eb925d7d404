import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { noQuotas } from '#core/project.ts'
import type { DefinitionChanges, DefinitionStore, ProjectDefinitions } from '#ports/definition-store.ts'
import { silentLogger } from '#telemetry/log.ts'
import { startDefinitionCache } from './definition-cache.ts'

function definitionsOf(id: number, apiToken: string, revision: number): ProjectDefinitions {
  const project = {
    id,
    uuid: `uuid-${id}`,
    name: 'p',
    apiToken,
    timezone: 'UTC',
    anonymizeIps: false,
    geoipEnabled: true,
    propertyMatchingVersion: 1,
    quotas: noQuotas,
    createdAtMs: 0,
  } as const
  return { project, revision, flags: [], groupTypes: [] }
}

function storeOf(initial: ProjectDefinitions[]): DefinitionStore & { change(changes: DefinitionChanges): void } {
  let latest: DefinitionChanges = { revision: 1, projects: initial, deletedProjectIds: [] }
  return {
    revision: async () => latest.revision,
    loadChanges: async () => latest,
    change: changes => {
      latest = changes
    },
  }
}

const options = {
  compile: (definitions: ProjectDefinitions) => definitions.revision,
  logger: silentLogger(),
  pollMs: 60_000,
}

describe('the definition cache', () => {
  it('serves a write before catchUp resolves', async t => {
    const store = storeOf([definitionsOf(1, 'phc_a', 1)])
    const cache = await startDefinitionCache({ ...options, store })
    t.after(() => cache.close())
    assert.equal(cache.findByToken('phc_a'), 1)
    store.change({ revision: 2, projects: [definitionsOf(1, 'phc_a', 2)], deletedProjectIds: [] })
    await cache.catchUp(2)
    assert.equal(cache.findByToken('phc_a'), 2)
    assert.equal(cache.findById(1), 2)
  })

  it('forgets the old key of a project whose key changed, and deleted projects', async t => {
    const store = storeOf([definitionsOf(1, 'phc_a', 1), definitionsOf(2, 'phc_b', 1)])
    const cache = await startDefinitionCache({ ...options, store })
    t.after(() => cache.close())
    store.change({ revision: 2, projects: [definitionsOf(1, 'phc_new', 2)], deletedProjectIds: [2] })
    await cache.catchUp(2)
    assert.equal(cache.findByToken('phc_a'), null)
    assert.equal(cache.findByToken('phc_new'), 2)
    assert.equal(cache.findByToken('phc_b'), null)
    assert.equal(cache.findById(2), null)
  })

  it('goes on with the last definitions when the store fails', async t => {
    const store = storeOf([definitionsOf(1, 'phc_a', 1)])
    const failing = { ...store, revision: () => Promise.reject(new Error('down')) }
    const cache = await startDefinitionCache({ ...options, store: failing, pollMs: 1 })
    t.after(() => cache.close())
    await new Promise(resolve => setTimeout(resolve, 20))
    assert.equal(cache.findByToken('phc_a'), 1)
    assert.ok(cache.isServing())
  })
})
