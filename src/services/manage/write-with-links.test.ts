import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { DefinitionLinks } from '#core/flags/definitions/definition-links.ts'
import { err, ok } from '#core/result.ts'
import { PortError } from '#ports/port-error.ts'
import type { LinkedWrite } from '#ports/state/flag-store.ts'
import { writeCheckedDefinition } from './write-with-links.ts'

const reference = { kind: 'flag', id: 1, path: 'filters' } as const
const self = { kind: 'flag', id: 2, name: 'b' } as const

/** A store that returns the given links one after the other, then the last ones every time. */
function storeOf(...flagIds: number[][]) {
  let reads = 0
  return {
    reads: () => reads,
    listFlagsById: async () => [],
    async findLinks(): Promise<DefinitionLinks> {
      const ids = flagIds[Math.min(reads++, flagIds.length - 1)]!
      return {
        revision: reads,
        flags: ids.map(id => ({ id, name: 'a', flagIds: [], cohortIds: [], experimentIds: [] })),
        cohorts: [],
        groupTypes: [],
        experimentIds: [],
      }
    },
  }
}

describe('writing a definition', () => {
  it('needs no look-up if the definition refers to nothing', async () => {
    const store = storeOf([])
    const write = async (linked: LinkedWrite) => ok(linked)
    const written = await writeCheckedDefinition(store, {
      projectId: 1,
      self,
      references: [],
      issues: [],
      skipValidation: false,
      write,
    })
    assert.deepEqual([written, store.reads()], [ok({ written: {}, warnings: [] }), 0])
  })

  it('is checked again when the definitions changed in the meantime, and then refused', async () => {
    const store = storeOf([1], [])
    const revisions: unknown[] = []
    const write = async ({ linksRevision }: LinkedWrite) => {
      revisions.push(linksRevision)
      return err('definitions_changed' as const)
    }
    const definition = { projectId: 1, self, references: [reference], issues: [], skipValidation: false, write }
    const written = await writeCheckedDefinition<null, never>(store, definition)
    assert.ok(!written.ok && written.error.kind === 'invalid')
    assert.deepEqual(revisions, [1])
  })

  it('succeeds despite concurrent writes without references, since writes are serialized', async () => {
    let revision = 1
    const plain: Promise<unknown>[] = []
    const base = { projectId: 1, self, issues: [], skipValidation: false }
    const store = {
      listFlagsById: async () => [],
      async findLinks(): Promise<DefinitionLinks> {
        const links = { ...(await storeOf([1]).findLinks()), revision }
        const write = async () => ok(++revision)
        plain.push(writeCheckedDefinition<number, never>(store, { ...base, references: [], write }))
        await new Promise(resolve => setImmediate(resolve))
        return links
      },
    }
    const written = await writeCheckedDefinition<number, never>(store, {
      ...base,
      references: [reference],
      write: async ({ linksRevision }) => (linksRevision === revision ? ok(++revision) : err('definitions_changed')),
    })
    assert.deepEqual([written, plain.length], [ok({ written: 2, warnings: [] }), 1])
    assert.deepEqual(await Promise.all(plain), [ok({ written: 3, warnings: [] })])
  })

  it('succeeds with missing references if validation is skipped, and returns them as warnings', async () => {
    const definition = {
      ...{ projectId: 1, self, references: [reference], issues: [], skipValidation: true },
      write: async (linked: LinkedWrite) => ok(linked),
    }
    const written = await writeCheckedDefinition(storeOf([]), definition)
    assert.ok(written.ok)
    assert.deepEqual([written.value.written, written.value.warnings.length], [{}, 1])
  })

  it('fails with a retryable conflict when the definitions keep changing', async () => {
    const definition = {
      ...{ projectId: 1, self, references: [reference], issues: [], skipValidation: false },
      write: async () => err('definitions_changed' as const),
    }
    await assert.rejects(
      writeCheckedDefinition<null, never>(storeOf([1]), definition),
      (error: unknown) => error instanceof PortError && error.code === 'conflict',
    )
  })
})
