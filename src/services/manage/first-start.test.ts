import assert from 'node:assert/strict'
import { randomBytes, randomUUID } from 'node:crypto'
import { it } from 'node:test'
import { migrateSqlite } from '#adapters/sqlite/kysely-on-sqlite.ts'
import { openSqliteManagementStore } from '#adapters/sqlite/sqlite-management-store.ts'
import { tempDir } from '../../../tests/support/temp-dir.ts'
import { aChange } from '../../../tests/support/values.ts'
import { completeFirstStart } from './first-start.ts'
import { hashSecret } from './secret-digests.ts'

it('the first start announces that it will generate keys, and reports nothing if keys exist', async t => {
  const dataFolder = tempDir(t)
  await migrateSqlite(dataFolder)
  const management = openSqliteManagementStore({ dataFolder, access: 'write' })
  t.after(() => management.close())
  const steps: string[] = []
  const start = () =>
    completeFirstStart({
      management: {
        ...management,
        createProject: project => {
          steps.push('a project key')
          return management.createProject(project, aChange())
        },
        createPersonalKey: key => {
          steps.push('a personal key')
          return management.createPersonalKey(key, aChange())
        },
      },
      clock: { nowMs: () => 5 },
      newUuid: randomUUID,
      randomBytes,
      projectKey: null,
      personalKey: null,
      beforeKeys: () => steps.push('said'),
    })
  const first = await start()
  assert.notEqual(first.personalKey, null)
  assert.match(first.welcomeToken!, /^[\w-]{43}$/)
  assert.equal((await management.findSignInLink(hashSecret(first.welcomeToken!)))?.role, 'admin')
  assert.deepEqual(steps, ['said', 'a project key', 'a personal key'])
  steps.length = 0
  const { personalKey, welcomeToken, hasUsers } = await start()
  assert.deepEqual([personalKey, welcomeToken, hasUsers], [null, null, false])
  assert.deepEqual(steps, [])
})
