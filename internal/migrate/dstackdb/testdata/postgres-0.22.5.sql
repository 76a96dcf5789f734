-- Tables of a PostgreSQL database that a server of dstack 0.22.5 made; the schema is that of the search path.
CREATE TABLE alembic_version (
    version_num character varying(32) NOT NULL
);
CREATE TABLE fleets (
    id uuid NOT NULL,
    name character varying(100) NOT NULL,
    project_id uuid NOT NULL,
    created_at timestamp without time zone NOT NULL,
    last_processed_at timestamp without time zone NOT NULL,
    deleted boolean NOT NULL,
    deleted_at timestamp without time zone,
    status character varying(100) NOT NULL,
    status_message text,
    spec text NOT NULL,
    consolidation_attempt integer DEFAULT 0 NOT NULL,
    last_consolidated_at timestamp without time zone,
    lock_expires_at timestamp without time zone,
    lock_token uuid,
    lock_owner character varying(100),
    current_master_instance_id uuid
);
CREATE TABLE members (
    id uuid NOT NULL,
    project_id uuid NOT NULL,
    user_id uuid NOT NULL,
    project_role character varying(100) NOT NULL,
    member_num integer
);
CREATE TABLE projects (
    id uuid NOT NULL,
    name character varying(50) NOT NULL,
    ssh_private_key text NOT NULL,
    ssh_public_key text NOT NULL,
    default_gateway_id uuid,
    owner_id uuid NOT NULL,
    deleted boolean NOT NULL,
    default_pool_id uuid,
    created_at timestamp without time zone NOT NULL,
    is_public boolean DEFAULT false NOT NULL,
    original_name character varying(50),
    templates_repo text
);
CREATE TABLE runs (
    id uuid NOT NULL,
    project_id uuid NOT NULL,
    repo_id uuid NOT NULL,
    user_id uuid NOT NULL,
    submitted_at timestamp without time zone NOT NULL,
    run_name character varying(100) NOT NULL,
    status character varying(100) NOT NULL,
    run_spec text NOT NULL,
    deleted boolean NOT NULL,
    last_processed_at timestamp without time zone NOT NULL,
    gateway_id uuid,
    termination_reason character varying(100),
    service_spec text,
    fleet_id uuid,
    resubmission_attempt integer NOT NULL,
    priority integer NOT NULL,
    deployment_num integer NOT NULL,
    desired_replica_count integer NOT NULL,
    next_triggered_at timestamp without time zone,
    desired_replica_counts text,
    lock_expires_at timestamp without time zone,
    lock_token uuid,
    lock_owner character varying(100),
    skip_min_processing_interval boolean DEFAULT false NOT NULL
);
CREATE TABLE secrets (
    id uuid NOT NULL,
    project_id uuid NOT NULL,
    created_at timestamp without time zone NOT NULL,
    updated_at timestamp without time zone NOT NULL,
    name character varying(200) NOT NULL,
    value character varying NOT NULL
);
CREATE TABLE user_public_keys (
    id uuid NOT NULL,
    created_at timestamp without time zone NOT NULL,
    user_id uuid NOT NULL,
    name character varying(100) NOT NULL,
    type character varying(100) NOT NULL,
    fingerprint character varying(100) NOT NULL,
    key text NOT NULL
);
CREATE TABLE users (
    id uuid NOT NULL,
    name character varying(50) NOT NULL,
    token character varying(200) NOT NULL,
    global_role character varying(100) NOT NULL,
    projects_quota integer NOT NULL,
    email character varying(200),
    token_hash character varying(2000) NOT NULL,
    active boolean NOT NULL,
    created_at timestamp without time zone NOT NULL,
    ssh_private_key text,
    ssh_public_key text,
    deleted boolean DEFAULT false NOT NULL,
    original_name character varying(50)
);
INSERT INTO alembic_version VALUES ('40f19bea9d2a');
INSERT INTO members VALUES ('82c59e34-9788-41cf-9f9c-8c2b52876578', '25f4b2bd-7fee-4c2a-b620-6fe588d068dc', '7dc42a13-6c64-4bac-b41b-2624223cf03e', 'ADMIN', 0);
INSERT INTO members VALUES ('cb4d3ce4-61ea-488d-a5f4-b5a8cf28c5a8', '1b556f6e-4a66-40e7-91ad-7219d044fb00', '7dc42a13-6c64-4bac-b41b-2624223cf03e', 'ADMIN', 0);
INSERT INTO members VALUES ('8e442e64-969d-451b-a6f4-b15e0529f80d', '1b556f6e-4a66-40e7-91ad-7219d044fb00', '3e4378ca-0932-4443-9ab2-c36be0511382', 'MANAGER', NULL);
INSERT INTO projects VALUES ('25f4b2bd-7fee-4c2a-b620-6fe588d068dc', 'main', 'x', 'x', NULL, '7dc42a13-6c64-4bac-b41b-2624223cf03e', false, NULL, '2026-11-16 09:58:25.823007', false, NULL, NULL);
INSERT INTO projects VALUES ('1b556f6e-4a66-40e7-91ad-7219d044fb00', 'vision', 'x', 'x', NULL, '7dc42a13-6c64-4bac-b41b-2624223cf03e', false, NULL, '2026-11-16 09:58:29.214639', false, NULL, NULL);
INSERT INTO secrets VALUES ('291d0238-4be4-4b48-9fda-728e85baa66a', '25f4b2bd-7fee-4c2a-b620-6fe588d068dc', '2026-11-16 09:58:29.6953', '2026-11-16 09:58:29.695306', 'hf_token', 'enc:aes:key2:pOolvqw/X5pzteJ2yi3dnDbs2WoKlMnwHRxtQdwFcYNWfcL8zMX7fux0lQ==');
INSERT INTO users VALUES ('7dc42a13-6c64-4bac-b41b-2624223cf03e', 'admin', 'enc:aes:key2:QDVcqFMKjDxgTruIAtvDnRlhVF1+M5knh6WNhtOsKQgwQBuFPX2YqlnW9U8yx0fKnhfLirjB22VnKQ==', 'ADMIN', 10, NULL, '349e7401190dc3599312b5cf87389c0699b12fb495bf414fac3b485e00888b1f', true, '2026-11-16 09:58:25.500846', NULL, NULL, false, NULL);
INSERT INTO users VALUES ('3e4378ca-0932-4443-9ab2-c36be0511382', 'ann', 'enc:aes:key2:buAQzhyyylsRzTTgy5SUB2v9aYCycD/MyYhioMEreNyFloYx20NmY1OOAgmMN3s0P/PYHtDLtYyUug+CC6lVPA==', 'USER', 10, 'ann@example.org', '0a3c0a3c04165631df1abcedad4a5cb4b9579948a938cb2d8f71a3fc631144c1', true, '2026-11-16 09:58:28.864625', NULL, NULL, false, NULL);
