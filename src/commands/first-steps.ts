// What a start prints for the person at the terminal: where it listens, the keys, and three things to try.

import type { Config } from '../config.ts'
import type { Service } from './start-service.ts'

export function firstSteps(service: Service, config: Config): string {
  const { projectKey, personalKey, ignoredProjectKey } = service.bootstrapped
  const api = service.adminUrl ?? service.url
  const lines = ['', `  Pennon is serving on ${service.url}`, '']
  if (service.adminUrl !== null) lines.push(`  Private API       ${service.adminUrl}`)
  if (projectKey !== null) lines.push(`  Project API key   ${projectKey}   (public: for SDKs)`)
  if (personalKey !== null) lines.push(`  Personal API key  ${personalKey}   (secret: shown only now)`)
  else lines.push('  Personal API key  was made at the first start; if it is lost: npm run pennon -- new-key')
  lines.push(`  Data              ${config.dataFolder}`, '')
  if (ignoredProjectKey)
    lines.push('  PENNON_PROJECT_KEY differs from the stored key and was ignored: it only names the first project.', '')
  if (projectKey !== null) lines.push(...thingsToTry(service.url, api, projectKey, personalKey))
  return `${lines.join('\n')}\n`
}

function thingsToTry(url: string, api: string, projectKey: string, personalKey: string | null): string[] {
  const key = personalKey ?? '<personal API key>'
  return [
    '  Try:',
    '',
    '  1. Create a flag that is on for half of all users',
    `     curl -X POST ${api}/api/projects/@current/feature_flags/ -H 'Authorization: Bearer ${key}' -H 'Content-Type: application/json' -d '{"key": "my-flag", "filters": {"groups": [{"rollout_percentage": 50}]}}'`,
    '',
    '  2. Evaluate it for a user',
    `     curl -X POST '${url}/decide?v=3' -H 'Content-Type: application/json' -d '{"api_key": "${projectKey}", "distinct_id": "ada"}'`,
    '',
    '  3. Send an event, then look at it',
    `     curl -X POST ${url}/capture/ -H 'Content-Type: application/json' -d '{"api_key": "${projectKey}", "event": "$pageview", "distinct_id": "ada"}'`,
    `     curl '${api}/api/projects/@current/events/' -H 'Authorization: Bearer ${key}'`,
    '',
    '  Stop with Ctrl-C; the data stays. More: README.md',
    '',
  ]
}
