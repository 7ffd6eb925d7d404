// The configuration that a browser or phone reads before it asks for flags: the JSON, and the script that sets it.
// Source: docs/wire/evaluation.md 2.5, 7.6; docs/wire/clients.md 10.3.

import { offMembers } from './client-config.ts'

const tokenForm = /^[A-Za-z0-9_-]{1,200}$/

/** The form of keys made here or by PostHog. Projects may have been given other keys, of any printable ASCII. */
export function looksLikeProjectToken(token: string): boolean {
  return tokenForm.test(token)
}

export interface RemoteConfig {
  /**
   * False only when the project has no active flag: browsers then never ask for flags, and phones drop those they hold.
   */
  readonly hasFeatureFlags: boolean
  /** See `ClientConfig.members`. */
  readonly members: string
  readonly isOverRecordingQuota: boolean
}

/** For an unknown key: everything is off. */
export const offConfig: RemoteConfig = { hasFeatureFlags: false, members: offMembers, isOverRecordingQuota: false }

/** @param token any text. */
export function encodeRemoteConfig(token: string, config: RemoteConfig): string {
  const limited = config.isOverRecordingQuota ? '"quotaLimited":["recordings"],' : ''
  return (
    `{"token":${JSON.stringify(token)},"supportedCompression":["gzip","gzip-js"],` +
    `"hasFeatureFlags":${config.hasFeatureFlags},"config":{"enable_collect_everything":true},"toolbarParams":{},` +
    `"isAuthenticated":false,${limited}${config.members}}`
  )
}

/**
 * The script that passes the configuration to a posthog-js that is loaded after it. Ends with a line break, so that the
 * library may follow in the same file.
 * @param config JSON text; the script stays one statement for any text, even when a page inlines it in HTML.
 */
export function encodeRemoteConfigScript(token: string, config: string): string {
  const registry = 'window._POSTHOG_REMOTE_CONFIG'
  return (
    `(function () { ${registry} = ${registry} || {}; ` +
    `${registry}[${escapeForScript(JSON.stringify(token))}] = { config: ${escapeForScript(config)}, siteApps: [] } })();\n`
  )
}

/** JSON has these characters only in strings; in a script they could end a line or the element around it. */
function escapeForScript(json: string): string {
  return json.replaceAll(/[<>\u2028\u2029]/g, char => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)
}
