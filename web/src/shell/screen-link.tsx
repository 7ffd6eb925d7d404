import { Link } from '@tanstack/react-router'
import { Icon } from '../components/icon.tsx'
import type { Screen } from './screens.ts'

export function ScreenLink({ screen, className }: { screen: Screen; className: string }) {
  const { label, icon, to, params } = screen
  return (
    <Link to={to} {...(params && { params })} className={className} activeOptions={{ exact: true }}>
      <Icon name={icon} />
      <span>{label}</span>
    </Link>
  )
}
