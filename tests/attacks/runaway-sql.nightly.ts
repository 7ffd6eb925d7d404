// One call of a function that takes minutes for one block of rows: the engine checks its limits only between blocks.

import assert from 'node:assert/strict'
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, it } from 'node:test'
import { prepareEngineStart } from '../../src/adapters/clickhouse-embedded/start-engine.ts'
import { collectText } from '../support/child-processes.ts'
import { endProcess, registerProcess } from '../support/processes-in-folders.ts'
import { removeFolder } from '../support/temp-dir.ts'

const distances = `SELECT max(editDistance(materialize(repeat('a', 60000)), concat(repeat('b', 60000), toString(number))))
  FROM numbers(500)`

describe('SQL queries that cannot be stopped', () => {
  it('make the supervisor end and restart the engine, instead of using a core for hours', async t => {
    const dataFolder = mkdtempSync(join(tmpdir(), 'pennon-runaway-'))
    t.after(() => removeFolder(dataFolder))
    const { args, endpoint } = await prepareEngineStart(dataFolder, { queryTimeoutSeconds: 1 })
    const child = fork(new URL('../support/engine-child.ts', import.meta.url), [args[2]!, args[4]!, '2000'], {
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
    })
    registerProcess(dataFolder, child, 'SIGKILL')
    t.after(() => endProcess(child, 'SIGKILL'))
    const errors = collectText(child.stderr!)
    await once(child, 'message')
    const run = async (sql: string) => {
      const { username, password } = endpoint.analyst
      const authorization = `Basic ${Buffer.from(`${username}:${password}`).toString('base64')}`
      const response = await fetch(endpoint.url, { method: 'POST', body: sql, headers: { authorization } })
      return { status: response.status, text: await response.text() }
    }
    // A query that the engine can stop does not end it.
    assert.match((await run('SELECT count() FROM numbers(1e15)')).text, /TIMEOUT_EXCEEDED/)
    const exited = once(child, 'exit')
    await assert.rejects(run(distances))
    assert.deepEqual(await exited, [1, null])
    assert.match(errors(), /a user's SQL query has run for \d+ s and cannot be stopped/)
  })
})
