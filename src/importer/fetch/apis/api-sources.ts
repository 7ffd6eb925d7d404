// Creates the source of a configuration's export API, with secrets from the environment.

import type { FetchConfig } from '#importer/fetch/fetch-config.ts'
import { type Environment, findSecret, requireSecret } from '#importer/fetch/fetch-secrets.ts'
import type { FetchSource } from '#importer/fetch/fetch-source.ts'
import { checkRange } from '#importer/fetch/fetch-windows.ts'
import { ImportConfigError } from '#importer/records/import-source.ts'
import { amplitudeHosts, amplitudeReadyMs, createAmplitudeSource } from './amplitude-export.ts'
import { createMatomoSource, matomoReadyMs } from './matomo-visits.ts'
import { createMixpanelSource, mixpanelHosts } from './mixpanel-export.ts'
import { createPosthogSource, posthogHosts, posthogReadyMs } from './posthog-events.ts'

/** The limit of Mixpanel's standard contract. */
const mixpanelCallsPerHour = 60

/**
 * @param isPlan whether no request will be sent, so that secrets may be missing.
 * @throws ImportConfigError for a range that has not ended or an unknown region; FetchStop for a missing secret.
 */
export function createApiSource(config: FetchConfig, env: Environment, nowMs: number, isPlan: boolean): FetchSource {
  const secret = (name: string, what: string) => (isPlan ? '' : requireSecret(env, name, what))
  const range = config.range!
  switch (config.source) {
    case 'mixpanel':
      checkRange(range, nowMs, 0, 'any')
      return createMixpanelSource({
        host: findHost(config, mixpanelHosts),
        range,
        windowDays: config.window_days ?? 1,
        callsPerHour: config.calls_per_hour ?? mixpanelCallsPerHour,
        ...mixpanelAccount(env, config.project_id, secret),
      })
    case 'amplitude':
      checkRange(range, nowMs, amplitudeReadyMs, 'utc')
      return createAmplitudeSource({
        host: findHost(config, amplitudeHosts),
        range,
        windowDays: config.window_days ?? 1,
        apiKey: secret('AMPLITUDE_API_KEY', 'the API key of the project'),
        secretKey: secret('AMPLITUDE_SECRET_KEY', 'the secret key of the project'),
      })
    case 'matomo':
      checkRange(range, nowMs, matomoReadyMs, 'any')
      return createMatomoSource({
        host: new URL(config.host!),
        siteId: config.site_id!,
        range,
        token: secret('MATOMO_TOKEN', 'an auth token of a user who may view the site'),
      })
    case 'posthog':
      checkRange(range, nowMs, posthogReadyMs, 'utc')
      return createPosthogSource({
        host: findHost(config, posthogHosts),
        projectId: config.project_id!,
        range,
        personalKey: secret('POSTHOG_PERSONAL_KEY', 'a personal API key with the scope query:read'),
      })
    default:
      throw new Error(`${config.source} has no API`)
  }
}

function findHost({ host, region, source }: FetchConfig, hosts: Readonly<Record<string, string>>): URL {
  const address = host ?? hosts[region]
  if (address === undefined)
    throw new ImportConfigError(`${source} has no region ${region}. Regions: ${Object.keys(hosts).join(', ')}.`)
  return new URL(address)
}

/** A service account needs the project id; a project's API secret is sent as the user, without a password. */
function mixpanelAccount(env: Environment, projectId: string | null, secret: (name: string, what: string) => string) {
  const user = findSecret(env, 'MIXPANEL_SERVICE_ACCOUNT')
  if (user === null)
    return { user: secret('MIXPANEL_API_SECRET', 'the API secret of the project'), secret: '', projectId }
  if (projectId === null) throw new ImportConfigError('A service account of Mixpanel needs project_id.')
  return { user, secret: secret('MIXPANEL_SERVICE_SECRET', 'the secret of the service account'), projectId }
}
