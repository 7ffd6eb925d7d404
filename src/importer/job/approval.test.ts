import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import { createApproval, listChangesSinceApproval } from './approval.ts'
import type { Manifest } from './manifest.ts'
import type { ImportPlan } from './plan.ts'

const plan: ImportPlan = {
  v: 4,
  jobId: 'job-1',
  createdAt: '2026-01-15T00:00:00.000Z',
  toolVersion: '1.0.0',
  source: 'mixpanel',
  config: { source_timezone: 'Europe/Berlin' },
  files: [{ path: '/a.jsonl', object: 'a.jsonl' }],
  fetch: null,
  format: null,
  target: { address: 'https://pennon.example', projectKey: 'phc_1', projectId: '1', projectName: 'Shop' },
  limits: { maxRejectShare: 0.01, holdLiveWindow: false, retentionDays: null, groupTypesMax: 5 },
}
const manifest = { v: 1, parts: [{ id: '2024-05-01/0', sha256: 'abc' }] } as unknown as Manifest

describe('an approval', () => {
  const parts = { plan, manifest }
  const approval = createApproval(parts, '2026-01-15T01:00:00.000Z')

  it('still holds when the keys of the plan are read in another order', () => {
    const read = JSON.parse(
      JSON.stringify({ ...plan, target: Object.fromEntries(Object.entries(plan.target!).reverse()) }),
    )
    assert.deepEqual(
      listChangesSinceApproval(approval, { ...parts, plan: read as ImportPlan, manifest: structuredClone(manifest) }),
      [],
    )
    assert.equal(createApproval(parts, 'another time').sha256, approval.sha256)
  })

  it('lists what changed since it was given', () => {
    const changes: readonly (readonly [change: Partial<ImportPlan>, what: string])[] = [
      [{ config: {} }, 'the source or its configuration'],
      [{ toolVersion: '1.0.1' }, 'the source or its configuration'],
      [{ target: { ...plan.target!, projectKey: 'phc_2' } }, 'the target'],
      [{ limits: { ...plan.limits, maxRejectShare: 0.5 } }, 'the limits'],
    ]
    for (const [change, what] of changes)
      assert.deepEqual(listChangesSinceApproval(approval, { manifest, plan: { ...plan, ...change } }), [what])
    const other = { ...manifest, parts: [] } as Manifest
    assert.deepEqual(listChangesSinceApproval(approval, { plan, manifest: other }), ['the events (manifest.json)'])
  })
})
