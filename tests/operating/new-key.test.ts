import assert from 'node:assert/strict'
import { chmodSync, existsSync, readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import Database from 'better-sqlite3'
import { migrateSqlite } from '#adapters/sqlite/kysely-on-sqlite.ts'
import { findAccessProblem } from '#compose/stores/existing-state.ts'
import { keyItself, newKey } from '../support/new-key.ts'
import { startPennonFor } from '../support/pennon.ts'
import { callCommand } from '../support/pennon-command.ts'
import { tempDir } from '../support/temp-dir.ts'

/** Asserts exit code 2, no output, one line on stderr with the reason, and no key. */
async function assertRefused(dataFolder: string, reason: RegExp, ...options: readonly string[]): Promise<void> {
  const filesOf = () => (existsSync(dataFolder) ? readdirSync(dataFolder).sort() : null)
  const before = filesOf()
  const { exitCode, stdout, stderr } = await callCommand({ PENNON_DATA: dataFolder }, 'new-key', ...options)
  assert.deepEqual([exitCode, stdout], [2, ''], stderr)
  assert.match(stderr, /^pennon: [^\n]+\n$/)
  assert.match(stderr, reason)
  assert.deepEqual(filesOf(), before)
}

describe('pennon new-key', () => {
  it('creates a key with all scopes, next to a running instance and for a stopped one', async t => {
    const dataFolder = join(tempDir(t), 'data')
    const settings = { PENNON_DATA: dataFolder }
    const running = await startPennonFor(t, { dataFolder, waitForProcessing: false })
    const first = await newKey(settings, '--label', 'Ada’s laptop')
    assert.equal(first.exitCode, 0, first.stderr)
    assert.match(first.stdout, /Personal API key {2}phx_\w{43} {3}\(secret: shown only now\)/)
    const known = await keyItself(running.url, first.key)
    assert.deepEqual([known.label, known.scopes], ['Ada’s laptop', ['*']])
    assert.equal(await running.stop(), 0)
    // The command learns the instance's address only from its settings.
    assert.match(first.stdout, /curl "\$PENNON\/api\/.*where \$PENNON is the URL/s)
    const second = await newKey({ ...settings, PORT: '9000' })
    assert.equal(second.exitCode, 0, second.stderr)
    assert.match(second.stdout, /curl "http:\/\/127\.0\.0\.1:9000\/api\//)
    const third = await newKey({ ...settings, PENNON_ADMIN_PORT: '9001' })
    assert.match(third.stdout, /curl "http:\/\/127\.0\.0\.1:9001\/api\//)
    assert.notEqual(second.key, first.key)

    const again = await startPennonFor(t, { dataFolder, waitForProcessing: false })
    assert.equal((await keyItself(again.url, first.key)).label, 'Ada’s laptop')
    assert.equal((await keyItself(again.url, second.key)).label, 'pennon new-key')
    assert.match(again.output(), /created on first start; if lost: bin\/pennon new-key\n/)
    assert.equal(await again.stop(), 0)
  })

  it('refuses a folder without an instance', async t => {
    const folder = tempDir(t)
    await assertRefused(join(folder, 'none'), /no state in the data folder .*none\b/)
    writeFileSync(join(folder, 'state.db'), '')
    await assertRefused(folder, /no state in the data folder/)
    // A first start that ended before it made its project and key; the next start has to find them missing.
    const unfinished = tempDir(t)
    await migrateSqlite(unfinished)
    await assertRefused(unfinished, /no state in the data folder/)
  })

  it('reports that the data folder is not readable by the user of the command', t => {
    const folder = tempDir(t)
    chmodSync(folder, 0o700)
    const isRoot = process.geteuid!() === 0
    // root may read everything.
    if (isRoot) process.seteuid!(65_534)
    else chmodSync(folder, 0)
    try {
      assert.match(
        findAccessProblem(folder)!,
        /is not readable by user \d+ \(EACCES\)\. Run this as the user of the instance\.$/,
      )
    } finally {
      if (isRoot) process.seteuid!(0)
      else chmodSync(folder, 0o700)
    }
    assert.equal(findAccessProblem(folder), null)
  })

  it('refuses a file that is not a state, and the state of a newer Pennon', async t => {
    const folder = tempDir(t)
    writeFileSync(join(folder, 'state.db'), 'this is a text, and a long one, but no database')
    await assertRefused(folder, /cannot be used: .*not a database/)
    const newer = tempDir(t)
    await migrateSqlite(newer)
    const database = new Database(join(newer, 'state.db'))
    database.exec("INSERT INTO schema_version (version, name) VALUES (999, 'future')")
    database.close()
    await assertRefused(newer, /newer Pennon \(schema 999/)
  })

  it('refuses labels that the private API would refuse, and unknown options', async t => {
    const folder = tempDir(t)
    await assertRefused(folder, /A label must have 1 to 200 characters/, '--label', ' ')
    await assertRefused(folder, /A label must have 1 to 200 characters/, '--label', 'x'.repeat(201))
    assert.equal((await newKey({ PENNON_DATA: folder }, '--labels', 'x')).exitCode, 2)
  })
})
