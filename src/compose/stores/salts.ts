// Opens the salts of visitors without cookies, beside the state but not in its file.

import { openSaltFiles } from '#adapters/salt-files/salt-files.ts'
import type { Config } from '#config.ts'
import type { CookielessSalts } from '#ports/state/cookieless-visitors.ts'
import type { Logger } from '#telemetry/log.ts'
import { stateUrlsOf } from './state.ts'

export async function openSalts(config: Config, logger: Logger): Promise<CookielessSalts> {
  const urls = stateUrlsOf(config)
  if (urls === null) return openSaltFiles(config.dataFolder)
  const { openPostgresSalts } = await import('#adapters/postgres/postgres-salts.ts')
  return openPostgresSalts({ url: urls.url, logger })
}
