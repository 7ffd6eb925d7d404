// Whether sessions of a page may be recorded: a project can name the domains it records. The check keeps other people's
// pages, which can read the public key, from filling the project with recordings; it is no protection against a client that
// lies about where it is. Source: docs/wire/evaluation.md 2.5.

/** What a request says of the page that it comes from. */
export interface PageHeaders {
  readonly origin?: string | undefined
  readonly referer?: string | undefined
  readonly 'user-agent'?: string | undefined
}

/** Apps have no page. Source: ours, after PostHog's own check. */
const appAgents = ['posthog-android', 'posthog-ios', 'posthog-react-native', 'posthog-flutter']

/** @param domains as `recordingHost` makes them; when empty, every page may be recorded. */
export function isRecordedPage(domains: readonly string[], page: PageHeaders): boolean {
  if (domains.length === 0) return true
  const hosts = [hostOf(page.origin), hostOf(page.referer)].filter(host => host !== null)
  if (hosts.some(host => domains.some(domain => matchesDomain(domain, host)))) return true
  const agent = page['user-agent']?.slice(0, agentCharsMax).toLowerCase() ?? ''
  return appAgents.some(app => agent.includes(app))
}

const agentCharsMax = 500

/**
 * The host of an entry such as `https://app.example.com`, `https://*.example.com` or `example.com`, in lower case; ports
 * and paths count for nothing. Null for what names no host.
 */
export function recordingHost(entry: string): string | null {
  return hostOf(/^[a-z][a-z0-9+.-]*:\/\//i.test(entry) ? entry : `https://${entry}`)
}

function hostOf(url: string | undefined): string | null {
  const host = url === undefined ? undefined : URL.parse(url)?.hostname
  return host === undefined || host === '' ? null : host
}

/** `*` stands for any text. Pieces are looked for from left to right, so that the time is linear in their number. */
function matchesDomain(domain: string, host: string): boolean {
  const [first, ...rest] = domain.split('*') as [string, ...string[]]
  const last = rest.pop()
  if (last === undefined) return domain === host
  if (!host.startsWith(first) || !host.endsWith(last) || host.length < first.length + last.length) return false
  const end = host.length - last.length
  let from = first.length
  for (const piece of rest) {
    const at = host.indexOf(piece, from)
    if (at === -1 || at + piece.length > end) return false
    from = at + piece.length
  }
  return true
}
