// A front that cannot be composed or cannot listen must close everything it opened before the fault.

import assert from 'node:assert/strict'
import { once } from 'node:events'
import { mkdirSync, readdirSync, readlinkSync, renameSync, writeFileSync } from 'node:fs'
import { type AddressInfo, createServer } from 'node:net'
import { join } from 'node:path'
import { after, before, describe, it } from 'node:test'
import { systemClock } from '#adapters/system/clock.ts'
import { composeFront, type FrontOptions } from '#compose/front/front.ts'
import { bootstrapInstance } from '#compose/instance/start.ts'
import { openManagementStore } from '#compose/stores/state.ts'
import { type Config, readConfig } from '#config.ts'
import { createSilentLogger } from '#telemetry/log.ts'
import { createMetrics } from '#telemetry/metrics.ts'
import { eventually } from '../support/eventually.ts'
import { testPersonalKey, testProjectKey } from '../support/pennon.ts'
import { tempDir } from '../support/temp-dir.ts'

const host: FrontOptions['host'] = {
  wakeUp: () => undefined,
  processingState: () => 'ok',
  isEventStoreUnavailable: () => false,
  otherMetrics: async () => [],
}

const cleanUps: (() => unknown)[] = []
let config: Config
/** Threads of Node's pool start with the first use and stay. */
let threadCountBefore: number

before(async () => {
  const read = readConfig({
    PORT: '0',
    PENNON_DATA: tempDir({ after: cleanUp => cleanUps.push(cleanUp) }),
    PENNON_PROJECT_KEY: testProjectKey,
    PENNON_PERSONAL_KEY: testPersonalKey,
  })
  assert.ok(read.ok)
  config = read.value
  const management = await openManagementStore(config, createSilentLogger())
  await bootstrapInstance(config, systemClock, management)
  await (await compose({ management })).close()
  threadCountBefore = threadCount()
})
after(async () => {
  for (const cleanUp of cleanUps) await cleanUp()
})

function compose(options: Partial<FrontOptions>) {
  const [logger, metrics] = [createSilentLogger(), createMetrics()]
  return composeFront({ config, clock: systemClock, geoip: null, logger, metrics, host, ...options })
}

/** Files of the data folder that this process has open. */
function openFiles(): string[] {
  return readdirSync('/proc/self/fd').flatMap(descriptor => {
    try {
      const path = readlinkSync(`/proc/self/fd/${descriptor}`)
      return path.startsWith(config.dataFolder) ? [path] : []
    } catch {
      return [] // the descriptor of the listing itself
    }
  })
}

function threadCount(): number {
  return readdirSync('/proc/self/task').length
}

async function assertClosesAll(options: Partial<FrontOptions>, reason: RegExp): Promise<void> {
  assert.deepEqual(openFiles(), [])
  await assert.rejects(compose(options), reason)
  assert.deepEqual(openFiles(), [])
  await eventually(() => threadCount() <= threadCountBefore, { what: 'the end of the threads' })
}

describe('a front that fails to start closes what it opened', { skip: process.platform !== 'linux' }, () => {
  it('when the event store cannot be opened after the state was opened', () =>
    assertClosesAll({ config: { ...config, clickhouseUrl: 'no address' } }, /URL/))

  it('when a setting turns out to be wrong after the stores were opened', () =>
    assertClosesAll({ config: { ...config, trustedProxies: ['nobody'] } }, /PENNON_TRUSTED_PROXIES/))

  it('when definitions cannot be read after the counters were started, and closes a state that the caller passed in', async () => {
    const open = await openManagementStore(config, createSilentLogger())
    let closeCount = 0
    const management = {
      ...open,
      loadChanges: () => Promise.reject(new Error('the state is broken')),
      close: () => {
        closeCount++
        return open.close()
      },
    }
    await assert.rejects(compose({ management }), /the state is broken/)
    assert.equal(closeCount, 1)
    assert.deepEqual(openFiles(), [])
  })

  it('when the log cannot be opened after the definitions were read', async () => {
    const [streamFolder, aside] = [join(config.dataFolder, 'log', 'main'), join(config.dataFolder, 'aside')]
    mkdirSync(streamFolder, { recursive: true })
    renameSync(streamFolder, aside)
    writeFileSync(streamFolder, 'no folder')
    await assertClosesAll({}, /ENOTDIR|EEXIST|unavailable/)
    renameSync(streamFolder, `${aside}-file`)
    renameSync(aside, streamFolder)
  })

  it('when the servers cannot be created after the log and the decode threads were started', () => {
    const metrics = createMetrics()
    metrics.requestSeconds.labels = () => {
      throw new Error('no such series')
    }
    return assertClosesAll({ metrics }, /no such series/)
  })
})

it('a front that cannot listen on one port leaves no listener on the other once it is closed', async () => {
  const taken = createServer()
  await once(taken.listen(0, '127.0.0.1'), 'listening')
  try {
    const { port: adminPort } = taken.address() as AddressInfo
    const front = await compose({ config: { ...config, adminPort } })
    await assert.rejects(front.listen(), { code: 'EADDRINUSE' })
    await front.close()
    const listening = process.getActiveResourcesInfo().filter(name => name === 'TCPServerWrap')
    assert.equal(listening.length, 1, 'the one of this test')
  } finally {
    taken.close()
  }
})
