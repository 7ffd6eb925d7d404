import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { ProjectDefinitions } from '#core/flags/definitions/project-definitions.ts'
import type { DefinitionChanges, DefinitionStore } from '#ports/state/definition-store.ts'
import { createSilentLogger } from '#telemetry/log.ts'
import { eventually } from '../../../tests/support/eventually.ts'
import { aProject, emptyDefinitions } from '../../../tests/support/values.ts'
import { type ServedChanges, startDefinitionCache } from './definition-cache.ts'

function definitionsOf(id: number, apiToken: string, revision: number): ProjectDefinitions {
  return emptyDefinitions(aProject({ id, apiToken }), revision)
}

function storeOf(initial: ProjectDefinitions[]): DefinitionStore & { change(changes: DefinitionChanges): void } {
  let latest: DefinitionChanges = { revision: 1, projects: initial, deletedProjectIds: [] }
  return {
    readRevision: async () => ({ revision: latest.revision, epoch: '' }),
    loadChanges: async () => latest,
    change: changes => {
      latest = changes
    },
  }
}

/** Returns what changed after the requested revision. A test sets the revision of the store. */
function movableStore(current: { revision: number; epoch: string }, projects: ProjectDefinitions[]) {
  const asked: number[] = []
  const store = { current, projects, asked, readRevision: async () => store.current, loadChanges }
  return store

  async function loadChanges(after: number): Promise<DefinitionChanges> {
    asked.push(after)
    return {
      revision: store.current.revision,
      projects: store.projects.filter(({ revision }) => revision > after),
      deletedProjectIds: [],
    }
  }
}

const options = {
  compile: (definitions: ProjectDefinitions) => definitions.revision,
  logger: createSilentLogger(),
  pollMs: 60_000,
}

describe('the definition cache', () => {
  it('serves a write by the time that catchUp resolves', async t => {
    const store = storeOf([definitionsOf(1, 'phc_a', 1)])
    const cache = await startDefinitionCache({ ...options, store })
    t.after(() => cache.close())
    assert.equal(cache.findByToken('phc_a'), 1)
    store.change({ revision: 2, projects: [definitionsOf(1, 'phc_a', 2)], deletedProjectIds: [] })
    await cache.catchUp(2)
    assert.equal(cache.findByToken('phc_a'), 2)
    assert.equal(cache.findById(1), 2)
  })

  it('serves its current definitions while newer ones are being compiled, then all of the newer ones together', async t => {
    const store = storeOf([definitionsOf(1, 'phc_a', 1), definitionsOf(2, 'phc_b', 1)])
    const compiling: (() => void)[] = []
    let waits = false
    const compile = async ({ revision }: ProjectDefinitions) => {
      if (waits) await new Promise<void>(resolve => compiling.push(resolve))
      return revision
    }
    const cache = await startDefinitionCache({ ...options, store, compile })
    t.after(() => cache.close())
    waits = true
    const projects = [definitionsOf(1, 'phc_c', 2), definitionsOf(2, 'phc_b', 2)]
    store.change({ revision: 2, projects, deletedProjectIds: [] })
    const caughtUp = cache.catchUp(2)
    for (const count of [1, 2]) {
      await eventually(() => compiling.length === count)
      assert.deepEqual(['phc_a', 'phc_b', 'phc_c'].map(cache.findByToken), [1, 1, null])
      compiling.at(-1)!()
    }
    await caughtUp
    assert.deepEqual(['phc_a', 'phc_b', 'phc_c'].map(cache.findByToken), [null, 2, 2])
  })

  it('reloads everything when the store was restored from an older copy', async t => {
    const lost = [definitionsOf(1, 'phc_a', 4), definitionsOf(2, 'phc_lost', 5)]
    const store = movableStore({ revision: 5, epoch: '' }, lost)
    const cache = await startDefinitionCache({ ...options, store, pollMs: 5 })
    t.after(() => cache.close())
    store.current = { revision: 4, epoch: '' }
    store.projects = [definitionsOf(1, 'phc_a', 4)]
    await eventually(() => cache.findByToken('phc_lost') === null)
    assert.equal(cache.findByToken('phc_a'), 4)
    store.current = { revision: 5, epoch: '' }
    store.projects = [definitionsOf(1, 'phc_b', 5)]
    await eventually(() => cache.findByToken('phc_b') === 5)
    assert.deepEqual(store.asked, [-1, -1, 4])
  })

  it('by the time that catchUp resolves, serves a write to a store that was restored from an older copy', async t => {
    const lost = [definitionsOf(1, 'phc_a', 4), definitionsOf(2, 'phc_lost', 9)]
    const store = movableStore({ revision: 9, epoch: '' }, lost)
    const cache = await startDefinitionCache({ ...options, store })
    t.after(() => cache.close())
    await cache.catchUp(8)
    assert.deepEqual(store.asked, [-1], 'a write loaded together with a later one')
    store.current = { revision: 5, epoch: '' }
    store.projects = [definitionsOf(1, 'phc_b', 5)]
    await cache.catchUp(5)
    assert.equal(cache.findByToken('phc_b'), 5)
    assert.equal(cache.findByToken('phc_lost'), null)
    assert.deepEqual(store.asked, [-1, -1])
  })

  it('serves a write whose revision was assigned a second time, after the store was restored from an older copy', async t => {
    const lost = [definitionsOf(1, 'phc_a', 40), definitionsOf(2, 'phc_lost', 50)]
    const store = movableStore({ revision: 50, epoch: 'before' }, lost)
    const cache = await startDefinitionCache({ ...options, store })
    t.after(() => cache.close())
    // The store is back at 49, and has a new write before the cache asks.
    store.current = { revision: 50, epoch: 'after' }
    store.projects = [definitionsOf(1, 'phc_new', 50)]
    await cache.catchUp(50)
    assert.equal(cache.findByToken('phc_new'), 50)
    assert.equal(cache.findByToken('phc_lost'), null)

    // The next epoch is ahead, but some of its changes have lower numbers than the revision that is served.
    store.current = { revision: 52, epoch: 'later' }
    store.projects = [definitionsOf(1, 'phc_back', 45), definitionsOf(3, 'phc_3', 52)]
    await cache.catchUp(52)
    assert.equal(cache.findByToken('phc_back'), 45)
  })

  it('tells the store which definitions it already has, but none from an earlier epoch of the store', async t => {
    let current = { revision: 1, epoch: 'before' }
    const requests: (readonly [number, ProjectDefinitions | null])[] = []
    const store: DefinitionStore = {
      readRevision: async () => current,
      loadChanges: async (after, held) => {
        requests.push([after, held?.(1) ?? null])
        return { ...current, projects: [definitionsOf(1, 'phc_a', current.revision)], deletedProjectIds: [] }
      },
    }
    const loaded: ProjectDefinitions[] = []
    const compile = (definitions: ProjectDefinitions) => loaded.push(definitions)
    const cache = await startDefinitionCache({ ...options, store, compile })
    t.after(() => cache.close())
    current = { revision: 2, epoch: 'before' }
    await cache.catchUp(2)
    current = { revision: 3, epoch: 'after' }
    await cache.catchUp(3)
    current = { revision: 4, epoch: 'after' }
    await cache.catchUp(4)
    assert.deepEqual(
      requests.map(([after, held]) => [after, held === null ? null : loaded.indexOf(held)]),
      [
        [-1, null],
        [1, 0],
        [-1, null],
        [3, 2],
      ],
    )
  })

  it('serves what another process wrote after the store was restored, even with an unchanged revision', async t => {
    const store = movableStore({ revision: 50, epoch: 'before' }, [definitionsOf(1, 'phc_a', 50)])
    const cache = await startDefinitionCache({ ...options, store, pollMs: 5 })
    t.after(() => cache.close())
    store.projects = [definitionsOf(1, 'phc_b', 50)]
    store.current = { revision: 50, epoch: 'after' }
    await eventually(() => cache.findByToken('phc_b') === 50)
    assert.equal(cache.findByToken('phc_a'), null)
  })

  it('fails when the store has lost the write that should be served, instead of retrying forever', async t => {
    let asked = 0
    const store: DefinitionStore = {
      readRevision: async () => ({ revision: 50, epoch: '' }),
      loadChanges: async () => {
        // An endless loop would block the event loop.
        if (++asked > 20) throw new Error('asked endlessly')
        return { revision: 50, projects: [definitionsOf(1, 'phc_a', 50)], deletedProjectIds: [] }
      },
    }
    const cache = await startDefinitionCache({ ...options, store })
    t.after(() => cache.close())
    asked = 0
    await assert.rejects(cache.catchUp(51), { name: 'PortError', code: 'unavailable' })
    assert.ok(asked <= 4, `${asked} loads`)
    assert.equal(cache.findByToken('phc_a'), 50)
    await cache.catchUp(50)
  })

  it('follows changes that the store reports, without polling', async t => {
    const store = storeOf([definitionsOf(1, 'phc_a', 1)])
    let tell: ((revision: number) => void) | undefined
    const telling: DefinitionStore = {
      ...store,
      onChange: listener => {
        tell = listener
      },
    }
    const cache = await startDefinitionCache({ ...options, store: telling })
    t.after(() => cache.close())
    store.change({ revision: 2, projects: [definitionsOf(1, 'phc_b', 2)], deletedProjectIds: [] })
    tell!(2)
    await eventually(() => cache.findByToken('phc_b') === 2)
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

  it('continues with the last definitions when the store fails', async t => {
    const store = storeOf([definitionsOf(1, 'phc_a', 1)])
    let isDown = false
    let refusedCount = 0
    const failing: DefinitionStore = {
      ...store,
      readRevision: () => {
        if (!isDown) return store.readRevision()
        refusedCount++
        return Promise.reject(new Error('down'))
      },
    }
    const cache = await startDefinitionCache({ ...options, store: failing, pollMs: 1 })
    isDown = true
    t.after(() => cache.close())
    await eventually(() => refusedCount >= 2, { what: 'polls of the store that is down' })
    assert.equal(cache.findByToken('phc_a'), 1)
    assert.ok(cache.isServing())
  })

  it('reports changed and deleted projects, even after a full reload', async t => {
    let revision = 5
    let projects = [definitionsOf(1, 'phc_a', 4), definitionsOf(2, 'phc_b', 5)]
    const store: DefinitionStore = {
      readRevision: async () => ({ revision, epoch: '' }),
      loadChanges: async after => {
        return { revision, projects: projects.filter(project => project.revision > after), deletedProjectIds: [] }
      },
    }
    const served: ServedChanges[] = []
    const cache = await startDefinitionCache({ ...options, store, onRevision: changes => served.push(changes) })
    t.after(() => cache.close())
    revision = 6
    projects = [definitionsOf(1, 'phc_a', 6), definitionsOf(2, 'phc_b', 5)]
    await cache.catchUp(6)
    revision = 3
    projects = [definitionsOf(1, 'phc_a', 3)]
    await cache.catchUp(3)
    const one = { id: 1, apiToken: 'phc_a' }
    assert.deepEqual(served, [
      {
        projects: [
          { ...one, revision: 4 },
          { id: 2, apiToken: 'phc_b', revision: 5 },
        ],
        deletedProjectIds: [],
      },
      { projects: [{ ...one, revision: 6 }], deletedProjectIds: [] },
      { projects: [{ ...one, revision: 3 }], deletedProjectIds: [2] },
    ])
  })

  it('checks only once for changes that clients know from elsewhere, however many clients ask', async t => {
    let asked = 0
    const latest = { revision: 1, projects: [definitionsOf(1, 'phc_a', 1)], deletedProjectIds: [] }
    const store: DefinitionStore = {
      readRevision: async () => {
        asked++
        return { revision: latest.revision, epoch: '' }
      },
      loadChanges: async () => latest,
    }
    const cache = await startDefinitionCache({ ...options, store })
    t.after(() => cache.close())
    asked = 0
    await Promise.all([cache.lookForChanges(), cache.lookForChanges()])
    assert.equal(asked, 1)
    latest.revision = 2
    latest.projects = [definitionsOf(1, 'phc_a', 2)]
    await Promise.all([cache.lookForChanges(), cache.lookForChanges(), cache.lookForChanges()])
    assert.equal(asked, 3, 'one check, and one with the load')
    assert.equal(cache.findByToken('phc_a'), 2)
  })
})
