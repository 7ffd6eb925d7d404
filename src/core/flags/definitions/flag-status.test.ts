import assert from 'node:assert/strict'
import { describe, it } from 'node:test'
import type { JsonObject } from '../../json.ts'
import { type FlagStatus, type FlagStatusInput, statusOfFlag } from './flag-status.ts'

const dayMs = 86_400_000
const nowMs = 1_790_000_000_000

const everybody = { groups: [{ properties: [], rollout_percentage: 100 }] }
const nobody = { groups: [{ properties: [], rollout_percentage: 0 }] }
const some = { groups: [{ properties: [], rollout_percentage: 40 }] }
const variant = {
  groups: [{ properties: [], rollout_percentage: 100, variant: 'b' }],
  multivariate: { variants: ['a', 'b'].map(key => ({ key, rollout_percentage: 50 })) },
}
const unreadable = { groups: 'all' }

/** Ages in days; `called` null: no call is known. */
interface Case {
  readonly filters: JsonObject
  readonly settled: number
  readonly called: number | null
  readonly over?: Partial<FlagStatusInput>
}

const table: [Case, FlagStatus, reason: RegExp][] = [
  [{ filters: everybody, settled: 0, called: null }, 'ACTIVE', /^No call of the flag has been recorded yet\.$/],
  [{ filters: everybody, settled: 29.999, called: null }, 'ACTIVE', /^No call/],
  [{ filters: everybody, settled: 30, called: null }, 'STALE', /been true for all users for 30 days\. No call/],
  [{ filters: variant, settled: 45.5, called: null }, 'STALE', /been the variant "b" for all users for 45 days\./],
  [{ filters: everybody, settled: 400, called: 0 }, 'ACTIVE', /^The flag was called within the last day\.$/],
  [{ filters: everybody, settled: 400, called: 1 }, 'ACTIVE', /^The flag was last called 1 day ago\.$/],
  [{ filters: everybody, settled: 400, called: 29.999 }, 'ACTIVE', /^The flag was last called 29 days ago\.$/],
  [{ filters: everybody, settled: 400, called: 30 }, 'STALE', /^The flag has not been called for 30 days\.$/],
  [{ filters: some, settled: 0, called: 31 }, 'STALE', /^The flag has not been called for 31 days\.$/],
  [{ filters: some, settled: 400, called: null }, 'ACTIVE', /^No call/],
  [{ filters: some, settled: 400, called: 2 }, 'ACTIVE', /last called 2 days ago/],
  [{ filters: nobody, settled: 29.999, called: null }, 'ACTIVE', /^No call/],
  [{ filters: nobody, settled: 30, called: null }, 'STALE', /rolled out to no users for 30 days\. No call/],
  [
    { filters: nobody, settled: 30, called: 0 },
    'STALE',
    /rolled out to no users for 30 days\. The flag was called within/,
  ],
  [{ filters: { groups: [] }, settled: 31, called: null }, 'STALE', /to no users/],
  [{ filters: unreadable, settled: 400, called: null }, 'ACTIVE', /^No call/],
  [{ filters: everybody, settled: 400, called: 99, over: { active: false } }, 'INACTIVE', /is disabled/],
  [{ filters: everybody, settled: 400, called: 99, over: { active: false, archived: true } }, 'ARCHIVED', /archived/],
  [{ filters: everybody, settled: 400, called: 0, over: { deleted: true, archived: true } }, 'DELETED', /deleted/],
  [{ filters: everybody, settled: 0, called: -1 }, 'ACTIVE', /within the last day/],
]

describe('the status of a flag', () => {
  for (const [{ filters, settled, called, over }, status, reason] of table)
    it(`is ${status} with ${JSON.stringify({ ...filters, settled, called, ...over }).slice(0, 150)}`, () => {
      const flag = { active: true, archived: false, deleted: false, filters, ...over }
      const found = statusOfFlag(
        { ...flag, conditionsSinceMs: nowMs - settled * dayMs },
        called === null ? null : nowMs - called * dayMs,
        nowMs,
      )
      assert.equal(found.status, status)
      assert.match(found.reason, reason)
    })
})
