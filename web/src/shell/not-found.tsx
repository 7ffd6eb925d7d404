import { Gone } from '../components/states/states.tsx'
import { RouteLink } from './route-link.tsx'

export function NotFound() {
  return (
    <main>
      <Gone title="There is no such screen">
        The address may be mistyped, or of another version of Pennon. <RouteLink to="/">Home</RouteLink>
      </Gone>
    </main>
  )
}
