// Creates the source of a configuration's export API, with secrets from the environment.

import type { FetchConfig } from '#importer/fetch/fetch-config.ts'
import { basicCredentials, type Environment, findSecret, requireSecret } from '#importer/fetch/fetch-secrets.ts'
import type { FetchSource } from '#importer/fetch/fetch-source.ts'
import { checkRange } from '#importer/fetch/fetch-windows.ts'
import { ImportConfigError } from '#importer/records/import-source.ts'
import { createMatomoSource } from './matomo-visits.ts'
import { createPosthogSource } from './posthog-events.ts'
import { createAmplitudeSource, createMixpanelSource } from './window-exports.ts'

const hourMs = 3_600_000

interface Api {
  /** Addresses by region. */
  readonly hosts: Readonly<Record<string, string>>
  /** As `checkRange` takes them. */
  readonly readyMs: number
  readonly zone: 'utc' | 'any'
}

const apis = {
  mixpanel: {
    hosts: { us: 'https://data.mixpanel.com', eu: 'https://data-eu.mixpanel.com', in: 'https://data-in.mixpanel.com' },
    ...{ readyMs: 0, zone: 'any' },
  },
  // Data is available about two hours after its receipt.
  amplitude: {
    hosts: { us: 'https://amplitude.com', eu: 'https://analytics.eu.amplitude.com' },
    ...{ readyMs: 3 * hourMs, zone: 'utc' },
  },
  // A visit may extend half an hour into the next day.
  matomo: { hosts: {}, readyMs: hourMs, zone: 'any' },
  // Senders queue events while they are offline; most arrive within the hour.
  posthog: {
    hosts: { us: 'https://us.posthog.com', eu: 'https://eu.posthog.com' },
    ...{ readyMs: hourMs, zone: 'utc' },
  },
} as const satisfies Record<string, Api>

/**
 * @param isPlan whether no request will be sent, so that secrets may be missing.
 * @throws ImportConfigError for a range that has not ended or an unknown region; FetchStop for a missing secret.
 */
export function createApiSource(config: FetchConfig, env: Environment, nowMs: number, isPlan: boolean): FetchSource {
  const source = config.source as keyof typeof apis
  const { hosts, readyMs, zone }: Api = apis[source]
  checkRange(config.range!, nowMs, readyMs, zone)
  const address = config.host ?? hosts[config.region]
  if (address === undefined)
    throw new ImportConfigError(`${source} has no region ${config.region}. Regions: ${Object.keys(hosts).join(', ')}.`)
  const host = new URL(address)
  const secret = (name: string, what: string) => (isPlan ? '' : requireSecret(env, name, what))
  switch (source) {
    case 'mixpanel': {
      const account = findSecret(env, 'MIXPANEL_SERVICE_ACCOUNT')
      if (account !== null && config.project_id === null)
        throw new ImportConfigError('A service account of Mixpanel needs project_id.')
      const [user, password] =
        account === null
          ? [secret('MIXPANEL_API_SECRET', 'the API secret of the project'), '']
          : [account, secret('MIXPANEL_SERVICE_SECRET', 'the secret of the service account')]
      return createMixpanelSource(config, host, basicCredentials(user, password))
    }
    case 'amplitude': {
      const apiKey = secret('AMPLITUDE_API_KEY', 'the API key of the project')
      const secretKey = secret('AMPLITUDE_SECRET_KEY', 'the secret key of the project')
      return createAmplitudeSource(config, host, basicCredentials(apiKey, secretKey))
    }
    case 'matomo': {
      const token = secret('MATOMO_TOKEN', 'an auth token of a user who may view the site')
      return createMatomoSource(config, host, token)
    }
    case 'posthog': {
      const personalKey = secret('POSTHOG_PERSONAL_KEY', 'a personal API key with the scope query:read')
      return createPosthogSource(config, host, personalKey)
    }
  }
}
