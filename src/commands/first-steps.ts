// The text that a start prints for the person at the terminal: where it listens, the keys, and three things to try.

import { statfsSync } from 'node:fs'
import type { Config } from '#config.ts'
import { moreInReadme, pennonCommand } from '#distribution.ts'
import { buildLinkUrl } from '#services/manage/manage-users.ts'
import { formatBytes } from './format-bytes.ts'
import type { Service } from './start-service.ts'

/** Enough for a small batch and the overhead of a log segment: with less space than this, captures are refused. */
const captureBytesMin = 64 * 1024

export function formatFirstSteps(
  service: Pick<Service, 'url' | 'adminUrl' | 'bootstrapped' | 'statePlace'>,
  config: Config,
): string {
  const { projectKey, ignoredProjectKey, personalKey: madeKey } = service.bootstrapped
  // A key from the settings is not printed: the operator knows it, and this output ends up in logs.
  const personalKey = config.personalKey === null ? madeKey : null
  const api = service.adminUrl ?? service.url
  const lines = ['', `  Pennon is serving on ${service.url}`, '']
  if (service.adminUrl !== null) lines.push(`  Private API       ${service.adminUrl}`)
  if (config.eventsPort !== null && config.eventsPort !== 0)
    lines.push(
      `  Events port       http://${new URL(service.url).hostname}:${config.eventsPort}   (read-only; user project_1, password of PENNON_EVENTS_PASSWORD)`,
    )
  if (projectKey !== null) lines.push(`  Project API key   ${projectKey}   (public: for SDKs)`)
  if (personalKey !== null) lines.push(`  Personal API key  ${personalKey}   (secret: shown only now)`)
  else if (madeKey !== null) lines.push('  Personal API key  the one in PENNON_PERSONAL_KEY')
  else lines.push(`  Personal API key  created on first start; if lost: ${pennonCommand('new-key')}`)
  lines.push(...listScreens(service.bootstrapped, config.adminPort === null ? (config.publicUrl ?? api) : api))
  if (service.statePlace !== null) lines.push(`  State             ${service.statePlace}`)
  const isFirst = projectKey !== null && madeKey !== null
  // A start in the wrong folder creates a new instance there, which is easily mistaken for the existing one.
  lines.push(
    `  Data              ${config.dataFolder}${isFirst ? '   (created; set PENNON_DATA to use another folder)' : ''}`,
    '',
  )
  if (ignoredProjectKey)
    lines.push(
      '  PENNON_PROJECT_KEY differs from the stored key and was ignored: it only applies to the first start.',
      '',
    )
  for (const line of listCautions(config)) lines.push(`  ${line}`, '')
  // Later starts leave out the things to try, since the first start has shown them.
  if (isFirst) lines.push(...listThingsToTry(service.url, api, projectKey, personalKey, config.importOnly))
  else lines.push(stopping, '')
  return `${lines.join('\n')}\n`
}

/** Where people sign in; nothing at a public URL with a path, below which they cannot. */
function listScreens({ welcomeToken, hasUsers }: Service['bootstrapped'], base: string): string[] {
  if (buildLinkUrl(base, '') === null) return []
  const screens = `  Screens           ${base}/ui/`
  if (welcomeToken !== null)
    return [screens, `  Sign in           ${buildLinkUrl(base, welcomeToken)}   (secret: works once, within 24 hours)`]
  return [hasUsers ? screens : `${screens}   (for a link to sign in: ${pennonCommand('sign-in-link')})`]
}

const stopping = `  Stop with Ctrl-C; the data is kept.${moreInReadme}`

/** Effects of settings that a newcomer would mistake for a fault: a line each, with the remedy. */
function listCautions({ importOnly, freeBytesMin, dataFolder, host }: Config): string[] {
  const { bavail, bsize } = statfsSync(dataFolder)
  const freeBytes = bavail * bsize
  return [
    ...(['0.0.0.0', '::'].includes(host)
      ? [`Listening on all addresses of this machine (HOST=${host}): anyone who can reach its ports can use it.`]
      : []),
    ...(importOnly
      ? [
          'Import-only: only batches with historical_migration are stored (set PENNON_IMPORT_ONLY=false to accept all events).',
        ]
      : []),
    ...(freeBytes - freeBytesMin < captureBytesMin
      ? [
          `Capture returns 503: ${formatBytes(freeBytes)} of disk space are free, PENNON_MIN_FREE_BYTES is ${formatBytes(freeBytesMin)}. Free disk space, or lower it.`,
        ]
      : []),
  ]
}

function listThingsToTry(
  url: string,
  api: string,
  projectKey: string,
  personalKey: string | null,
  importOnly: boolean,
): string[] {
  const key = personalKey ?? '<personal API key>'
  return [
    '  Try:',
    '',
    '  1. Create a flag that is on for half of all users',
    `     curl -X POST ${api}/api/projects/@current/feature_flags/ -H 'Authorization: Bearer ${key}' -H 'Content-Type: application/json' -d '{"key": "my-flag", "filters": {"groups": [{"rollout_percentage": 50}]}}'`,
    '',
    '  2. Evaluate it: on for bob, off for ada',
    `     curl -X POST '${url}/flags?v=2' -H 'Content-Type: application/json' -d '{"api_key": "${projectKey}", "distinct_id": "bob"}'`,
    '',
    ...(importOnly
      ? [
          '  3. Import an event, then read it',
          `     curl -X POST ${url}/batch/ -H 'Content-Type: application/json' -d '{"api_key": "${projectKey}", "historical_migration": true, "batch": [{"event": "$pageview", "distinct_id": "bob", "timestamp": "2026-01-01T00:00:00Z"}]}'`,
        ]
      : [
          '  3. Send an event, then read it',
          `     curl -X POST ${url}/capture/ -H 'Content-Type: application/json' -d '{"api_key": "${projectKey}", "event": "$pageview", "distinct_id": "bob"}'`,
        ]),
    `     curl '${api}/api/projects/@current/events/${importOnly ? '?after=2025-12-31' : ''}' -H 'Authorization: Bearer ${key}'`,
    '',
    ...(personalKey === null
      ? []
      : [
          '  This first key has all permissions. Create a separate key for each person, then delete this one:',
          `     ${pennonCommand('new-key --label "Ada"')}`,
          `     curl -X DELETE ${api}/api/personal_api_keys/@current/ -H 'Authorization: Bearer ${key}'`,
          '',
        ]),
    stopping,
    '',
  ]
}
