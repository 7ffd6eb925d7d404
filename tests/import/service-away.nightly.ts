// The service is killed while an import is being sent. Another program then answers 503 in its place, then nothing
// listens, and then the service returns. The importer waits, says why, and continues by itself.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { it } from 'node:test'
import { eventually } from '../support/eventually.ts'
import { freePort } from '../support/free-port.ts'
import { startPennon } from '../support/pennon.ts'
import { mustSucceed } from '../support/pennon-command.ts'
import { testSeed } from '../support/seeded-random.ts'
import { syntheticSources, writeSyntheticExport } from '../support/synthetic-exports/synthetic-exports.ts'
import { tempDir } from '../support/temp-dir.ts'
import { ImportRun, newProject } from './killed-imports/import-run.ts'
import { assertSame } from './killed-imports/kill-source.ts'
import { contentsOf } from './killed-imports/project-contents.ts'

it('an import survives an outage of its service, and gives the same result as without an outage', async t => {
  const seed = testSeed()
  t.diagnostic(`SEED=${seed}`)
  const folder = tempDir(t)
  const port = await freePort()
  const start = () => startPennon({ dataFolder: join(folder, 'data'), settings: { PORT: String(port) } })
  let pennon = await start()
  t.after(() => pennon.stop())
  const source = syntheticSources.find(({ name }) => name === 'segment')!
  const plan = await writeSyntheticExport(source, join(folder, 'export'), { count: 6_000, seed })
  const [straightProject, otherProject] = [await newProject(pennon, 'straight'), await newProject(pennon, 'other')]
  await new ImportRun(pennon, join(folder, 'straight'), plan, straightProject).straight()
  const expected = await contentsOf(pennon, straightProject.id)

  // Slow enough to run for some seconds.
  const run = new ImportRun(pennon, join(folder, 'other'), plan, otherProject, 2_000)
  await run.plan()
  while (run.stage() !== 'send') await run.next()
  const { child, ended } = run.start()
  await eventually(() => run.sentShare() > 0.2 || child.exitCode !== null, { what: 'the first events' })
  await pennon.killTree()
  const refusing = createServer((_, response) => response.writeHead(503, { 'retry-after': '1' }).end()).listen(
    port,
    '127.0.0.1',
  )
  await once(refusing, 'listening')
  await eventually(() => /asks to wait \(503\)/.test(run.waiting() ?? ''), { what: 'the reason for waiting' })
  refusing.closeAllConnections()
  refusing.close()
  await once(refusing, 'close')
  await eventually(() => /no connection/.test(run.waiting() ?? ''), { what: 'the reason for waiting' })
  assert.equal(child.exitCode, null)
  pennon = await start()
  mustSucceed(await ended)
  assert.ok(run.sent().retries > 0)
  while (run.stage() !== 'done') await run.next()
  assertSame(await contentsOf(pennon, otherProject.id), expected)
})
