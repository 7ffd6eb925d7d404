// A front composed as in production, with real stores but without a worker and an engine.

import assert from 'node:assert/strict'
import { createSilentLogger, type Logger } from '#telemetry/log.ts'
import { createMetrics } from '#telemetry/metrics.ts'
import { systemClock } from '../../src/adapters/system/clock.ts'
import { composeFront, type Front } from '../../src/compose/front/front.ts'
import { bootstrapInstance } from '../../src/compose/instance/start.ts'
import { openManagementStore } from '../../src/compose/stores/state.ts'
import { readConfig } from '../../src/config.ts'
import { type Pennon, privateApi, testPersonalKey, testProjectKey } from './pennon.ts'
import { tempDir } from './temp-dir.ts'

export interface RunningFront extends Front {
  readonly url: string
  readonly adminUrl: string | null
  readonly api: Pennon['api']
}

export async function startFront(
  settings: Readonly<Record<string, string>> = {},
  logger: Logger = createSilentLogger(),
): Promise<RunningFront> {
  const cleanUps: (() => void)[] = []
  const config = readConfig({
    PORT: '0',
    PENNON_DATA: tempDir({ after: cleanUp => void cleanUps.push(cleanUp) }),
    PENNON_PROJECT_KEY: testProjectKey,
    PENNON_PERSONAL_KEY: testPersonalKey,
    ...settings,
  })
  assert.ok(config.ok)
  const management = await openManagementStore(config.value, logger)
  await bootstrapInstance(config.value, systemClock, management)
  const front = await composeFront({
    config: config.value,
    clock: systemClock,
    geoip: null,
    logger,
    metrics: createMetrics(),
    host: {
      wakeUp: () => undefined,
      processingState: () => 'ok',
      isEventStoreUnavailable: () => false,
      otherMetrics: async () => [],
    },
    management,
  })
  const { url, adminUrl } = await front.listen()
  return {
    ...front,
    url,
    adminUrl,
    api: privateApi(adminUrl ?? url),
    close: async () => {
      await front.close()
      for (const cleanUp of cleanUps) cleanUp()
    },
  }
}
