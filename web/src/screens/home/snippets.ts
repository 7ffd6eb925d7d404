/** How to send a first event, by SDK. */
export interface Snippet {
  readonly id: string
  readonly label: string
  readonly code: string
}

/** @param host such as `https://pennon.example`. @param key the key of the project. */
export function listSnippets(host: string, key: string): readonly Snippet[] {
  return [
    {
      id: 'web',
      label: 'Web page',
      code: `<script
  src="${host}/static/loader.js"
  data-project-token="${key}"
  data-api-host="${host}"
></script>`,
    },
    {
      id: 'posthog-js',
      label: 'posthog-js',
      code: `// npm install posthog-js
import posthog from 'posthog-js'

posthog.init('${key}', { api_host: '${host}' })
posthog.capture('first event')`,
    },
    {
      id: 'node',
      label: 'Node.js',
      code: `// npm install posthog-node
import { PostHog } from 'posthog-node'

const posthog = new PostHog('${key}', { host: '${host}' })
posthog.capture({ distinctId: 'ada', event: 'first event' })
await posthog.shutdown()`,
    },
    {
      id: 'python',
      label: 'Python',
      code: `# pip install posthog
from posthog import Posthog

posthog = Posthog('${key}', host='${host}')
posthog.capture('first event', distinct_id='ada')
posthog.shutdown()`,
    },
    {
      id: 'curl',
      label: 'curl',
      code: `curl '${host}/i/v0/e/' -H 'content-type: application/json' \\
  -d '{"api_key": "${key}", "event": "first event", "distinct_id": "ada"}'`,
    },
  ]
}
