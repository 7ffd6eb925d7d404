// Changes made through one front reach another front on the same state.

import assert from 'node:assert/strict'
import { it } from 'node:test'
import { eventually } from '../support/eventually.ts'
import { startFront } from '../support/front.ts'
import { tempDir } from '../support/temp-dir.ts'

it('a personal key deleted on one front is rejected by the others within a second', async t => {
  const settings = { PENNON_DATA: tempDir(t) }
  const [first, second] = [await startFront(settings), await startFront(settings)]
  t.after(() => Promise.all([first.close(), second.close()]))
  const made = await first.api<{ id: string; value: string }>('POST', '/api/personal_api_keys/', {
    label: 'short-lived',
    scopes: ['feature_flag:read'],
  })
  const statusOn = async ({ url }: { url: string }) => {
    const headers = { authorization: `Bearer ${made.value}` }
    const response = await fetch(`${url}/api/projects/@current/feature_flags/`, { headers })
    await response.arrayBuffer()
    return response.status
  }
  assert.deepEqual([await statusOn(first), await statusOn(second)], [200, 200])

  await first.api('DELETE', `/api/personal_api_keys/${made.id}/`)
  assert.equal(await statusOn(first), 401)
  await eventually(async () => (await statusOn(second)) === 401, { what: 'the end of the key' })
})
